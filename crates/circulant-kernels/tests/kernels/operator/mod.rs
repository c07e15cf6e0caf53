mod filter_transform;
mod isometries;
mod plan;
