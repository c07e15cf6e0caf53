//! What the two 2D layers share: a BCCB operator and its explicit matrix.

use burn::tensor::{Device, Tensor, TensorData};
use circulant_kernels::{Complex, HalfPlane, operator_norm_2d};

use crate::LayerError;
use crate::operator::{Layout, Operator};

#[derive(Debug, Clone)]
pub(super) struct ImageMap {
    operator: Operator,
}

impl ImageMap {
    pub(super) fn new(
        [channels_in, channels_out]: [usize; 2],
        [height, width]: [usize; 2],
        radius: f64,
    ) -> Result<Self, LayerError> {
        let plane = HalfPlane::with_radius(height, width, radius)?;
        Ok(Self {
            operator: Operator::image(plane, channels_in, channels_out)?,
        })
    }

    pub(super) fn plane(&self) -> &HalfPlane {
        let Layout::Image { plane, .. } = self.operator.layout() else {
            unreachable!("built from a half plane")
        };
        plane
    }

    pub(super) fn operator(&self) -> &Operator {
        &self.operator
    }

    /// `[C_in, C_out]`.
    pub(super) fn channels(&self) -> [usize; 2] {
        self.operator.layout().channels().into()
    }

    /// `[H, W]`.
    pub(super) fn grid(&self) -> [usize; 2] {
        self.operator.layout().grid().into()
    }

    pub(super) fn half_spectrum(&self, coordinates: &[f64]) -> Vec<Complex<f64>> {
        let pairs = self.channels().iter().product();
        let mut bins = vec![Complex::default(); self.plane().bins() * pairs];
        self.plane()
            .unpack(coordinates, pairs, &mut bins)
            .expect("one number per coordinate");
        bins
    }

    /// `M[(c,y,x),(o,Y,X)] = w[o,c,(Y-y) mod H,(X-x) mod W]`.
    pub(super) fn dense_matrix(&self, filter: &[f64], device: &Device) -> Tensor<2> {
        let ([channels_in, _], [height, width]) = (self.channels(), self.grid());
        let pixels = height * width;
        let (rows, columns) = (self.operator.input_len(), self.operator.output_len());
        let entry = |row: usize, column: usize| {
            let (c, y, x) = (row / pixels, row % pixels / width, row % width);
            let (o, y_out, x_out) = (column / pixels, column % pixels / width, column % width);
            let (dy, dx) = ((y_out + height - y) % height, (x_out + width - x) % width);
            filter[((o * channels_in + c) * height + dy) * width + dx]
        };
        let entries = (0..rows).flat_map(|row| (0..columns).map(move |column| entry(row, column)));
        Tensor::from_data(
            TensorData::new(entries.collect::<Vec<_>>(), [rows, columns]),
            device,
        )
    }

    pub(super) fn operator_norm(&self, coordinates: &[f64]) -> f64 {
        let [channels_in, channels_out] = self.channels();
        operator_norm_2d(self.plane(), channels_in, channels_out, coordinates)
            .map_or(f64::NAN, |norm| norm.estimate())
    }
}
