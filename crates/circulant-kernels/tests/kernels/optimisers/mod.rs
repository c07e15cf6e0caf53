mod adam;
mod adan;
