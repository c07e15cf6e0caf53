//! Which tensor of a checkpoint belongs to which parameter of a module.
//!
//! In names, `*` stands for a number: `blocks.*.norm1.weight`. The stars of a target take the numbers of the source in their
//! order.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

use crate::parameters::ParameterPath;

/// One rule: a source and where its parts go.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule {
    pub(super) source: String,
    /// More than one: the source is cut into as many equal parts along its first axis.
    pub(super) targets: Vec<String>,
    /// `[out, in...]` to `[in, out]`.
    pub(super) transposed: bool,
}

/// The names of a checkpoint and what they mean.
///
/// ```
/// use circulant::pretrained::NameMap;
///
/// let names = NameMap::new()
///     .copied("norm.weight", "norm.gamma")
///     // PyTorch stores the matrix of a dense layer as [out, in], Burn as [in, out].
///     .transposed("layers.*.proj.weight", "blocks.*.attention.output.weight")
///     .split(
///         "layers.*.qkv.weight",
///         ["query", "key", "value"].map(|name| format!("blocks.*.attention.{name}.weight")),
///     )
///     // A new head for other classes: the old one is left out, the module's own values stay.
///     .ignoring("classifier.weight")
///     .keeping("head.weight");
/// # let _ = names;
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NameMap {
    pub(super) rules: Vec<Rule>,
    pub(super) prefix: String,
    pub(super) ignored: Vec<String>,
    pub(super) kept: Vec<String>,
}

impl NameMap {
    /// Without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tensor `source` is the parameter `target`.
    pub fn copied(self, source: impl Into<String>, target: impl Into<String>) -> Self {
        self.rule(source, vec![target.into()], false)
    }

    /// The tensor `source`, `[out, in]` or the kernel `[out, in, height, width]` of a convolution over patches, is the matrix
    /// `target` of a dense layer, `[in, out]`.
    pub fn transposed(self, source: impl Into<String>, target: impl Into<String>) -> Self {
        self.rule(source, vec![target.into()], true)
    }

    /// The tensor `source` is made of equal parts along its first axis, one per target: the transposed matrices of dense
    /// layers if it has two axes, their biases if it has one.
    pub fn split<S: Into<String>>(
        self,
        source: impl Into<String>,
        targets: impl IntoIterator<Item = S>,
    ) -> Self {
        let targets = targets.into_iter().map(Into::into).collect();
        self.rule(source, targets, true)
    }

    fn rule(mut self, source: impl Into<String>, targets: Vec<String>, transposed: bool) -> Self {
        self.rules.push(Rule {
            source: source.into(),
            targets,
            transposed,
        });
        self
    }

    /// Names in the file begin with this, e.g. `module.` or `_orig_mod.`.
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Tensors of the file that are left out.
    pub fn ignoring(mut self, source: impl Into<String>) -> Self {
        self.ignored.push(source.into());
        self
    }

    /// Parameters of the module that keep their values.
    pub fn keeping(mut self, target: impl Into<String>) -> Self {
        self.kept.push(target.into());
        self
    }

    /// A dense layer or a convolution over patches, with its bias.
    fn linear(self, source: &str, target: &str) -> Self {
        self.transposed(format!("{source}.weight"), format!("{target}.weight"))
            .copied(format!("{source}.bias"), format!("{target}.bias"))
    }

    fn norm(self, source: &str, target: &str) -> Self {
        self.copied(format!("{source}.weight"), format!("{target}.gamma"))
            .copied(format!("{source}.bias"), format!("{target}.beta"))
    }

    /// Queries, keys and values in one; `separator` is the last dot, or what stands in its place.
    fn fused(self, source: &str, separator: &str, attention: &str) -> Self {
        ["weight", "bias"].into_iter().fold(self, |names, kind| {
            let targets = ["query", "key", "value"];
            let targets = targets.map(|name| format!("{attention}.{name}.{kind}"));
            names.split(format!("{source}{separator}{kind}"), targets)
        })
    }

    /// The vision transformers of timm (and of DeiT and DINO) for a dense
    /// [`VisionTransformer`](crate::models::VisionTransformer).
    pub fn timm() -> Self {
        Self::new()
            .linear("patch_embed.proj", "patch_embedding")
            .copied("cls_token", "class_token")
            .copied("pos_embed", "positions")
            .norm("blocks.*.norm1", "blocks.*.attention_norm")
            .fused("blocks.*.attn.qkv", ".", "blocks.*.attention")
            .linear("blocks.*.attn.proj", "blocks.*.attention.output")
            .norm("blocks.*.norm2", "blocks.*.mlp_norm")
            .linear("blocks.*.mlp.fc1", "blocks.*.expand")
            .linear("blocks.*.mlp.fc2", "blocks.*.contract")
            .norm("norm", "norm")
            .linear("head", "head")
    }

    /// The vision transformers of torchvision, whose attention is `torch.nn.MultiheadAttention`.
    pub fn torchvision() -> Self {
        let layer = "encoder.layers.encoder_layer_*";
        let attention = format!("{layer}.self_attention");
        let mut names = Self::new()
            .linear("conv_proj", "patch_embedding")
            .copied("class_token", "class_token")
            .copied("encoder.pos_embedding", "positions")
            .norm(&format!("{layer}.ln_1"), "blocks.*.attention_norm")
            .fused(&format!("{attention}.in_proj"), "_", "blocks.*.attention")
            .linear(
                &format!("{attention}.out_proj"),
                "blocks.*.attention.output",
            )
            .norm(&format!("{layer}.ln_2"), "blocks.*.mlp_norm")
            .norm("encoder.ln", "norm")
            .linear("heads.head", "head");
        // Names of today, and those of the first releases.
        for [expand, contract] in [["0", "3"], ["linear_1", "linear_2"]] {
            names = names
                .linear(&format!("{layer}.mlp.{expand}"), "blocks.*.expand")
                .linear(&format!("{layer}.mlp.{contract}"), "blocks.*.contract");
        }
        names
    }

    /// `ViTForImageClassification` of Hugging Face.
    pub fn hugging_face() -> Self {
        let layer = "vit.encoder.layer.*";
        let mut names = Self::new()
            .linear(
                "vit.embeddings.patch_embeddings.projection",
                "patch_embedding",
            )
            .copied("vit.embeddings.cls_token", "class_token")
            .copied("vit.embeddings.position_embeddings", "positions");
        for name in ["query", "key", "value"] {
            names = names.linear(
                &format!("{layer}.attention.attention.{name}"),
                &format!("blocks.*.attention.{name}"),
            );
        }
        names
            .linear(
                &format!("{layer}.attention.output.dense"),
                "blocks.*.attention.output",
            )
            .norm(
                &format!("{layer}.layernorm_before"),
                "blocks.*.attention_norm",
            )
            .norm(&format!("{layer}.layernorm_after"), "blocks.*.mlp_norm")
            .linear(&format!("{layer}.intermediate.dense"), "blocks.*.expand")
            .linear(&format!("{layer}.output.dense"), "blocks.*.contract")
            .norm("vit.layernorm", "norm")
            .linear("classifier", "head")
    }

    /// The names of `module`'s own fields with the habits of `torch.nn`: matrices of dense layers are `[out, in]`, and norms have
    /// a `weight` and a `bias` in the place of `gamma` and `beta`.
    pub fn torch_nn<M: Module>(module: &M) -> Self {
        let mut fields = Fields::default();
        module.visit(&mut fields);
        fields.names
    }

    /// The map whose names a file has, whatever prefix it puts before them.
    pub(super) fn detect<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<Self> {
        let known = [
            ("patch_embed.proj.weight", Self::timm()),
            ("conv_proj.weight", Self::torchvision()),
            (
                "vit.embeddings.patch_embeddings.projection.weight",
                Self::hugging_face(),
            ),
        ];
        known.into_iter().find_map(|(signature, map)| {
            let prefix = names
                .clone()
                .find_map(|name| name.strip_suffix(signature))?;
            Some(map.with_prefix(prefix))
        })
    }
}

#[derive(Default)]
struct Fields {
    path: ParameterPath,
    containers: Vec<String>,
    names: NameMap,
}

impl ModuleVisitor for Fields {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
        self.containers.push(container.to_owned());
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
        self.containers.pop();
    }

    fn visit_float<const D: usize>(&mut self, _param: &Param<Tensor<D>>) {
        let target = self.path.name();
        let in_linear = self.containers.last().is_some_and(|c| c == "Struct:Linear");
        let names = std::mem::take(&mut self.names);
        self.names = if in_linear && D == 2 {
            names.transposed(target.clone(), target)
        } else {
            let renamed = |from, to| Some(format!("{}{to}", target.strip_suffix(from)?));
            let source = renamed("gamma", "weight").or_else(|| renamed("beta", "bias"));
            names.copied(source.unwrap_or_else(|| target.clone()), target.clone())
        };
    }
}

/// The numbers that the stars of `pattern` stand for in `name`, if it matches.
pub(super) fn numbers_of<'a>(pattern: &str, name: &'a str) -> Option<Vec<&'a str>> {
    let mut pieces = pattern.split('*');
    let mut rest = name.strip_prefix(pieces.next()?)?;
    let mut numbers = Vec::new();
    for piece in pieces {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return None;
        }
        let (number, behind) = rest.split_at(digits);
        numbers.push(number);
        rest = behind.strip_prefix(piece)?;
    }
    rest.is_empty().then_some(numbers)
}

/// `pattern` with these numbers in the place of its stars.
pub(super) fn with_numbers(pattern: &str, numbers: &[&str]) -> String {
    let mut numbers = numbers.iter();
    let mut name = String::new();
    for (i, piece) in pattern.split('*').enumerate() {
        if i > 0 {
            // A target with more stars than its source: they stay, and no parameter has such a name.
            name.push_str(numbers.next().unwrap_or(&"*"));
        }
        name.push_str(piece);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_numbers() {
        let numbers = numbers_of("a.*.b_*.c", "a.12.b_3.c");
        assert_eq!(numbers, Some(vec!["12", "3"]));
        assert_eq!(with_numbers("x.*.y.*", &["12", "3"]), "x.12.y.3");
        for name in ["a..b_3.c", "a.x.b_3.c", "a.1.b_3.cc", "a.1.b_3", "z"] {
            assert_eq!(numbers_of("a.*.b_*.c", name), None, "{name}");
        }
        assert_eq!(numbers_of("plain", "plain"), Some(vec![]));
    }

    #[test]
    fn files_are_known_by_their_names() {
        let names = ["module.cls_token", "module.patch_embed.proj.weight"];
        let found = NameMap::detect(names.into_iter());
        assert_eq!(found, Some(NameMap::timm().with_prefix("module.")));
        let found = NameMap::detect(["conv_proj.weight"].into_iter());
        assert_eq!(found, Some(NameMap::torchvision()));
        assert_eq!(NameMap::detect(["weight"].into_iter()), None);
    }
}
