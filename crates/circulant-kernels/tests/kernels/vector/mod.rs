mod elementary;
mod lane_sums;
mod negative_exponential;
mod normal_tail;
mod registers;
