//! Enums whose values have names: each is written once, beside its value.

/// Defines an enum, `ALL` of its values in order, and a function for their texts, or two. A value is displayed as its first text.
///
/// ```
/// loadline_model::named! {
///     /// A side.
///     #[derive(Debug, Clone, Copy, PartialEq)]
///     pub enum Side {
///         /// The one at the left.
///         Left: "l", "left-hand";
///         /// The other.
///         Right: "r", "right-hand";
///     }
///     /// In files.
///     pub fn id;
///     /// In sentences.
///     pub fn words;
/// }
/// assert_eq!((Side::ALL.len(), Side::Left.to_string(), Side::Right.words()), (2, Side::Left.id().into(), "right-hand"));
/// ```
#[macro_export]
macro_rules! named {
    (
        $(#[$about:meta])* pub enum $name:ident { $($(#[$of:meta])* $value:ident: $text:literal;)* }
        $(#[$means:meta])* pub fn $get:ident;
    ) => {
        $(#[$about])*
        pub enum $name { $($(#[$of])* $value,)* }

        impl $name {
            /// All values, in this order.
            pub const ALL: [$name; [$($name::$value),*].len()] = [$($name::$value),*];

            $(#[$means])*
            pub const fn $get(self) -> &'static str {
                match self { $($name::$value => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.$get())
            }
        }
    };
    (
        $(#[$about:meta])* pub enum $name:ident { $($(#[$of:meta])* $value:ident: $text:literal, $other:literal;)* }
        $(#[$means:meta])* pub fn $get:ident;
        $(#[$other_means:meta])* pub fn $get_other:ident;
    ) => {
        $crate::named! {
            $(#[$about])* pub enum $name { $($(#[$of])* $value: $text;)* }
            $(#[$means])* pub fn $get;
        }

        impl $name {
            $(#[$other_means])*
            pub const fn $get_other(self) -> &'static str {
                match self { $($name::$value => $other,)* }
            }
        }
    };
}

/// A text in small letters, as a constant.
macro_rules! small {
    ($text:expr) => {{
        const SMALL: [u8; $text.len()] = $crate::named::in_small($text);
        match std::str::from_utf8(&SMALL) {
            Ok(text) => text,
            Err(_) => "",
        }
    }};
}

pub(crate) use small;

pub(crate) const fn in_small<const N: usize>(text: &str) -> [u8; N] {
    let Some(letters) = text.as_bytes().first_chunk() else { return [0; N] };
    let mut small = *letters;
    small.make_ascii_lowercase();
    small
}
