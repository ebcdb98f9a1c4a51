"""Words that MySQL's and MariaDB's grammar allows in certain places of CREATE TABLE and CREATE INDEX."""

from app.dialects.word_lists import words

TYPES = words(
    """
    bigint binary bit blob bool boolean char character clob date datetime dec decimal double enum fixed float float4
    float8 geomcollection geometry geometrycollection inet4 inet6 int int1 int2 int3 int4 int8 integer json
    linestring long longblob longtext mediumblob mediumint mediumtext middleint multilinestring multipoint
    multipolygon national nchar number numeric nvarchar point polygon raw real serial set smallint text time
    timestamp tinyblob tinyint tinytext uuid varbinary varchar varchar2 varcharacter vector year
    """
)
"""What a column can be."""

CONSTRAINTS = words("check constraint foreign fulltext index key like period primary spatial unique")
"""What begins an entry of a table that is no column."""

AFTER_COLUMNS = words(
    """
    ( , as auto_increment autoextend_size avg_row_length character charset checksum collate comment compression
    connection data default delay_key_write encrypted encryption encryption_key_id engine engine_attribute ignore
    index insert_method itef_quotes key_block_size max_rows min_rows pack_keys page_checksum page_compressed
    page_compression_level partition password replace row_format secondary_engine secondary_engine_attribute select
    sequence start stats_auto_recalc stats_persistent stats_sample_pages storage table table_checksum tablespace
    transactional type union values with
    """
)
"""What may follow the columns of a table."""

AFTER_INDEX = words(
    """
    algorithm clustering comment engine_attribute ignored invisible key_block_size lock not nowait using visible
    wait with
    """
)
"""What may follow the columns of an index."""

INDEX_TYPES = words("btree hash rtree")
"""What USING may say."""

RESERVED = words(
    """
    accessible add all alter analyze and as asc asensitive before between bigint binary blob both by call cascade
    case change char character check collate column condition constraint continue convert create cross current_date
    current_time current_timestamp current_user cursor databases dec decimal declare default delayed delete desc
    describe deterministic distinct distinctrow div double drop dual each else elseif enclosed escaped except exists
    exit explain false fetch float for force foreign from fulltext grant group having high_priority if ignore in
    index infile inner inout insensitive insert int integer intersect interval into is iterate join key keys kill
    leading leave left like limit linear lines load localtime localtimestamp lock long longblob longtext loop
    low_priority match mediumblob mediumint mediumtext mod natural no_write_to_binlog not null numeric on optimize
    or order out outer outfile over partition precision primary procedure purge range read read_write reads real
    recursive references regexp release rename repeat replace require resignal restrict return revoke right rlike
    row_number rows schemas select sensitive separator set show signal smallint spatial specific sql sqlexception
    sqlstate sqlwarning ssl starting straight_join table terminated then tinyblob tinyint tinytext to trailing
    trigger true undo union unique unlock unsigned update usage use using values varbinary varchar varying when
    where while with write xor zerofill
    """
)
"""What is no name without backticks, on MySQL and on MariaDB."""

ATTRIBUTES = words(
    """
    after as ascii auto_increment binary byte char character charset check collate column_format comment compressed
    constraint default encrypted engine_attribute first generated int integer invisible key not null on persistent
    precision primary ref_system_id references secondary_engine_attribute serial signed srid storage stored text
    unicode unique unsigned varbinary varchar varchar2 varying virtual visible with without zerofill
    """
)
"""What may follow a column's type."""

CHANGES = words(
    """
    add algorithm alter analyze auto_increment change check coalesce convert disable discard drop enable exchange
    force import lock modify nowait optimize order partition rebuild remove rename reorganize repair set truncate
    upgrade validate wait without
    """
)
"""What begins a change of ALTER TABLE that sets no option."""
