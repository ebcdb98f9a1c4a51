"""What may stand in a statement on MySQL, by the names of sqlglot's nodes, and functions that it doesn't know by a node
of their own: everything else is refused."""

from app.dialects.word_lists import words

_READING = """
Select Union Intersect Except Subquery With CTE TableAlias From Join Table Alias Column Identifier Star Literal Boolean
Null Where Group Rollup Having Order Ordered Limit Offset Distinct Paren Tuple Values Exists Any All In Between Case If
Is Like Not And Or Xor EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Escape RegexpLike Add Sub Mul Div IntDiv Mod Neg
BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseLeftShift BitwiseRightShift Cast DataType DataTypeParam Interval Var
IntervalSpan Window WindowSpec Collate Introducer HexString BitString National WithinGroup
Anonymous
Abs Acos AnyValue Ascii Asin Atan Atan2 Avg BitwiseAndAgg BitwiseOrAgg BitwiseXorAgg Cbrt Ceil Chr
Coalesce Concat ConcatWs Contains Cos Cot Count CountIf CumeDist CurrentDate CurrentDatetime CurrentSchema
CurrentTime CurrentTimestamp CurrentUser Date DateAdd DateDiff DateStrToDate DateSub DateTrunc Day DayOfMonth DayOfWeek
DayOfYear DayOfWeekIso Dayname Monthname Degrees DenseRank Elt Exp Extract FirstValue Floor Format
FromBase64 Greatest GroupConcat Hex Unhex Hour Initcap JSONArray JSONArrayAgg JSONArrayAppend
JSONArrayContains JSONArrayInsert JSONBContains JSONExtract JSONExtractScalar JSONKeys JSONKeyValue JSONObject
JSONObjectAgg JSONPath JSONPathKey JSONPathRoot JSONPathSubscript JSONPathWildcard JSONRemove JSONSet JSONType
JSONValue JSONTable JSONSchema JSONColumnDef Lag LastDay LastValue Lead Least Left Length Ln Localtime Localtimestamp
Log LogicalAnd LogicalOr Lower LowerHex MatchAgainst Max MD5 MD5Digest Min Minute Month NthValue Ntile Nullif
Pad PercentRank Pi Pow Quarter Radians Rand Rank RegexpExtract RegexpInstr RegexpReplace Repeat Replace
Reverse Right Round RowNumber Second SHA SHA1Digest SHA2 SHA2Digest Sign Sin Soundex Space Sqrt Stddev StddevPop
StddevSamp StrPosition StrToDate StrToTime StrToUnix Stuff Substring SubstringIndex Sum Tan Time TimeAdd TimeDiff
TimeStrToTime TimeSub TimeToStr TimeToUnix TimestampAdd TimestampDiff TimestampSub Timestamp ToBase64 ToDays
Translate Trim Trunc TsOrDsAdd TsOrDsDiff TsOrDsToDate TsOrDsToDateStr TsOrDsToTime TsOrDsToTimestamp UnixToTime Upper
UtcDate UtcTime UtcTimestamp Uuid Variance VariancePop Week WeekOfYear Year YearOfWeek
"""
READING = words(_READING)
WRITING = READING | {"Insert", "Update", "Delete", "Schema", "OnConflict", "Returning", "Introducer"}
CHANGING = READING | words(
    """
    Create Alter Schema ColumnDef ColumnConstraint ColumnPosition Constraint AddConstraint AlterColumn Index
    IndexParameters IndexColumnConstraint PrimaryKey PrimaryKeyColumnConstraint UniqueColumnConstraint ForeignKey
    Reference NotNullColumnConstraint DefaultColumnConstraint AutoIncrementColumnConstraint CommentColumnConstraint
    CheckColumnConstraint ComputedColumnConstraint GeneratedAsIdentityColumnConstraint OnUpdateColumnConstraint
    CharacterSetColumnConstraint CollateColumnConstraint CharacterSet Properties EngineProperty CharacterSetProperty
    CollateProperty SchemaCommentProperty AutoIncrementProperty LikeProperty ColumnPrefix
    """
)

_QUERY = "with_ expressions distinct from_ joins where group having windows order limit offset"
ARGUMENTS = {
    name: words(allowed)
    for name, allowed in {
        "Select": _QUERY,
        "Union": f"{_QUERY} this expression",
        "Intersect": f"{_QUERY} this expression",
        "Except": f"{_QUERY} this expression",
        "Subquery": f"{_QUERY} this alias",
        "Table": "this db alias joins",
        "Join": "this on side kind using method",
        "Insert": "with_ this expression conflict returning ignore",
        "Update": "with_ this expressions where order limit returning",
        "Delete": "with_ this using where order limit tables returning",
        "Create": "this kind expression exists properties replace unique",
        "Alter": "this kind actions",
        "AlterColumn": "this default",
    }.items()
}
"""What these nodes may be given: the rest are hints, locks, targets and dialects that are not checked."""

FUNCTIONS = words(
    """
    adddate addtime bin bit_count bit_length char_length character_length concat conv convert_tz
    cos curdate curtime date_format dayname dayofmonth dayofweek dayofyear field find_in_set format from_days
    from_unixtime greatest grouping hex insert instr interval is_ipv4 is_ipv6 is_uuid isnull
    json_array json_array_append json_array_insert json_contains json_contains_path json_depth json_exists
    json_insert json_keys json_length json_merge_patch json_merge_preserve json_object json_overlaps json_pretty
    json_query json_quote json_remove json_replace json_search json_set json_storage_size json_table json_type
    json_unquote json_valid json_value lcase least left length locate log10 log2 lpad ltrim make_set makedate maketime
    microsecond mid mod monthname nvl nvl2 now oct octet_length ord percentile_cont percentile_disc median period_add
    period_diff position pow power quote
    regexp_instr regexp_like regexp_replace regexp_substr rpad rtrim row sec_to_time sha sha1 soundex space
    st_asgeojson st_astext st_contains st_distance st_distance_sphere st_geomfromtext
    st_intersects st_within st_x st_y strcmp str_to_date subdate substring_index subtime sysdate time_format
    time_to_sec timediff timestamp timestampadd to_base64 to_char to_days to_number to_seconds truncate ucase
    unix_timestamp utc_date utc_time utc_timestamp uuid uuid_to_bin bin_to_uuid values weekday weekofyear weight_string
    yearweek std stddev stddev_pop stddev_samp var_pop var_samp variance bit_and bit_or bit_xor json_arrayagg
    json_objectagg any_value inet_aton inet_ntoa inet6_aton inet6_ntoa crc32 atan2 dayname get_format
    """
)
"""Left out: what sleeps, locks, reads files, shows the server or the session, changes session state, draws from a
sequence, or is stored by the tenant."""

INFORMATION_SCHEMA = words(
    """
    tables columns views statistics table_constraints key_column_usage referential_constraints check_constraints
    schemata
    """
)
"""Tables of information_schema that a question may read: they show the tenant's own."""
