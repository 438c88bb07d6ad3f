//! Settings that print, and read back, as the names that `serde` gives them.

/// Implements `Display` and `FromStr` for an enum without data.
macro_rules! named {
    ($name:ty) => {
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::serde::Serialize::serialize(self, f)
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                use ::serde::de::value::{Error, StrDeserializer};
                let name: StrDeserializer<'_, Error> = StrDeserializer::new(text);
                ::serde::Deserialize::deserialize(name).map_err(|error| error.to_string())
            }
        }
    };
}

pub(crate) use named;
