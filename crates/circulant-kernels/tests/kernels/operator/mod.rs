mod filter_transform;
mod plan;
