//! A table as a Parquet file. No compression: the files are small, and every reader has it.

use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;

use crate::table::{Table, Values};

/// `table` as the bytes of a file with one group of rows. Every column may be null.
pub(crate) fn encoded(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let fields =
        table.columns.iter().map(|(name, values)| field(name, values).map(Arc::new)).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder(table.name).with_fields(fields).build()?;
    let version = concat!("loadline ", env!("CARGO_PKG_VERSION")).to_owned();
    let properties = WriterProperties::builder().set_created_by(version).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, values) in &table.columns {
        let Some(mut column) = group.next_column()? else { break };
        write(column.untyped(), values)?;
        column.close()?;
    }
    group.close()?;
    writer.into_inner()
}

fn field(name: &str, values: &Values) -> Result<Type, ParquetError> {
    let (physical, logical) = match values {
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Number(_) => (Physical::DOUBLE, None),
        Values::Whole(_) => (Physical::INT64, None),
        Values::Truth(_) => (Physical::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(name, physical);
    field.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build()
}

fn write(column: &mut ColumnWriter<'_>, values: &Values) -> Result<(), ParquetError> {
    fn levels<T>(all: &[Option<T>]) -> Vec<i16> {
        all.iter().map(|value| i16::from(value.is_some())).collect()
    }
    fn present<T: Copy>(all: &[Option<T>]) -> Vec<T> {
        all.iter().flatten().copied().collect()
    }
    match (column, values) {
        (ColumnWriter::ByteArrayColumnWriter(to), Values::Text(all)) => {
            let present: Vec<ByteArray> = all.iter().flatten().map(|text| ByteArray::from(text.as_str())).collect();
            to.write_batch(&present, Some(&levels(all)), None)
        }
        (ColumnWriter::DoubleColumnWriter(to), Values::Number(all)) => {
            to.write_batch(&present(all), Some(&levels(all)), None)
        }
        (ColumnWriter::Int64ColumnWriter(to), Values::Whole(all)) => {
            to.write_batch(&present(all), Some(&levels(all)), None)
        }
        (ColumnWriter::BoolColumnWriter(to), Values::Truth(all)) => {
            to.write_batch(&present(all), Some(&levels(all)), None)
        }
        _ => Err(ParquetError::General("a column has another type than its field".to_owned())),
    }
    .map(drop)
}
