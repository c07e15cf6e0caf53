//! The path of a parameter while Burn walks through a module: the names of the fields, without those of enum variants,
//! as in records.

/// Where the walk is.
#[derive(Debug, Default)]
pub(crate) struct ParameterPath(Vec<String>);

impl ParameterPath {
    pub(crate) fn enter(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.push(name.to_owned());
        }
    }

    pub(crate) fn exit(&mut self, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.pop();
        }
    }

    pub(crate) fn name(&self) -> String {
        self.0.join(".")
    }
}
