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
    fn present<'v, T>(cells: &[&'v Value], read: fn(&'v Value) -> Option<T>) -> (Vec<T>, Vec<i16>) {
        let cells: Vec<Option<T>> = cells.iter().map(|cell| read(cell)).collect();
        let levels = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
        (cells.into_iter().flatten().collect(), levels)
    }
    let written = match column {
        ColumnWriter::ByteArrayColumnWriter(to) => {
            let (values, levels) = present(cells, |cell| cell.as_str().map(ByteArray::from));
            to.write_batch(&values, Some(&levels), None)
        }
        ColumnWriter::DoubleColumnWriter(to) => {
            let (values, levels) = present(cells, Value::as_f64);
            to.write_batch(&values, Some(&levels), None)
        }
        ColumnWriter::Int64ColumnWriter(to) => {
            let (values, levels) = present(cells, Value::as_i64);
            to.write_batch(&values, Some(&levels), None)
        }
        ColumnWriter::BoolColumnWriter(to) => {
            let (values, levels) = present(cells, Value::as_bool);
            to.write_batch(&values, Some(&levels), None)
        }
        _ => Err(ParquetError::General("no field has this type".to_owned())),
    };
    written.map(drop)
}
