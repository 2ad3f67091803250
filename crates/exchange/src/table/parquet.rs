//! A table as a Parquet file. No compression: the files are small, and every reader has it.

use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;
use serde_json::Value;

use crate::table::{Kind, Table};

/// `table` as the bytes of a file with one group of rows. Every column may be null.
pub(crate) fn encoded(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let fields = table.columns.iter().map(|(name, kind)| field(name, *kind).map(Arc::new)).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder(table.name).with_fields(fields).build()?;
    let version = concat!("loadline ", env!("CARGO_PKG_VERSION")).to_owned();
    let properties = WriterProperties::builder().set_created_by(version).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for at in 0..table.columns.len() {
        let Some(mut column) = group.next_column()? else { break };
        let cells: Vec<&Value> = table.rows.iter().map(|row| row.get(at).unwrap_or(&Value::Null)).collect();
        write(column.untyped(), &cells)?;
        column.close()?;
    }
    group.close()?;
    writer.into_inner()
}

fn field(name: &str, kind: Kind) -> Result<Type, ParquetError> {
    let (physical, logical) = match kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Number => (Physical::DOUBLE, None),
        Kind::Whole => (Physical::INT64, None),
        Kind::Truth => (Physical::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(name, physical);
    field.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build()
}

fn write(column: &mut ColumnWriter<'_>, cells: &[&Value]) -> Result<(), ParquetError> {
    macro_rules! write {
        ($to:expr, $read:expr) => {{
            let cells: Vec<Option<_>> = cells.iter().copied().map($read).collect();
            let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
            $to.write_batch(&cells.into_iter().flatten().collect::<Vec<_>>(), Some(&levels), None).map(drop)
        }};
    }
    match column {
        ColumnWriter::ByteArrayColumnWriter(to) => write!(to, |cell: &Value| cell.as_str().map(ByteArray::from)),
        ColumnWriter::DoubleColumnWriter(to) => write!(to, Value::as_f64),
        ColumnWriter::Int64ColumnWriter(to) => write!(to, Value::as_i64),
        ColumnWriter::BoolColumnWriter(to) => write!(to, Value::as_bool),
        _ => Err(ParquetError::General("no field has this type".to_owned())),
    }
}
