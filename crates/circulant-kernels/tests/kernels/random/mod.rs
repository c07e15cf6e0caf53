mod normal;
mod philox;
