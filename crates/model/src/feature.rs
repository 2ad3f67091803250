//! Additions of features to a core type: a list of values, each stored under a name of its own beside the type's fields.

/// Declares the values that features add to `$owner`, how its list `$list` of them is stored, and a function of the owner for each.
///
/// A `list` that is absent is empty, a `flag` is false, and a `one`, a `text` or a `value`, which is copied, is `None`.
macro_rules! features {
    (
        $owner:ident.$list:ident, stored by $stored:ident: $(#[$about:meta])* pub enum $feature:ident {
            $($(#[$doc:meta])* $kind:ident $value:ident($name:ident: $type:ty);)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $feature { $($(#[$doc])* $value($crate::feature::features!(@held $kind $type)),)* }

        impl $owner {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> $crate::feature::features!(@found $kind $type) {
                    let found = self.$list.iter().find_map(|one| if let $feature::$value(of) = one { Some(of) } else { None });
                    $crate::feature::features!(@find $kind found)
                }
            )*
        }

        impl $feature {
            /// Place in the order in which they are stored.
            pub fn place(&self) -> usize {
                enum Place { $($value,)* }
                match self { $($feature::$value(_) => Place::$value as usize,)* }
            }
        }

        pub(crate) mod $stored {
            use serde::ser::SerializeMap as _;

            use super::*;

            #[derive(Default, Deserialize)]
            #[serde(default)]
            struct Stored { $($name: Option<$crate::feature::features!(@held $kind $type)>,)* }

            /// In the order in which they are declared.
            pub(crate) fn serialize<S: serde::Serializer>(all: &[$feature], to: S) -> Result<S::Ok, S::Error> {
                let mut fields = to.serialize_map(None)?;
                $(
                    for one in all {
                        if let $feature::$value(of) = one {
                            fields.serialize_entry(stringify!($name), of)?;
                        }
                    }
                )*
                fields.end()
            }

            pub(crate) fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<$feature>, D::Error> {
                let stored = Stored::deserialize(from)?;
                let all = [$(stored.$name.map($feature::$value),)*];
                Ok(all.into_iter().flatten().collect())
            }
        }
    };
    (@held list $type:ty) => { Vec<$type> };
    (@held $kind:ident $type:ty) => { $type };
    (@found list $type:ty) => { &[$type] };
    (@found text $type:ty) => { Option<&str> };
    (@found one $type:ty) => { Option<&$type> };
    (@found value $type:ty) => { Option<$type> };
    (@found flag $type:ty) => { $type };
    (@find list $found:ident) => { $found.map_or(&[], Vec::as_slice) };
    (@find text $found:ident) => { $found.map(String::as_str) };
    (@find one $found:ident) => { $found };
    (@find value $found:ident) => { $found.copied() };
    (@find flag $found:ident) => { $found.copied().unwrap_or_default() };
}

pub(crate) use features;
