"""What may stand in a statement on PostgreSQL, by the names of the parser's nodes: everything else is refused."""

from app.dialects.word_lists import words

READING = words(
    """
    SelectStmt ResTarget ColumnRef A_Star A_Const A_Expr BoolExpr NullTest BooleanTest CaseExpr CaseWhen CoalesceExpr
    MinMaxExpr SubLink FuncCall NamedArgExpr TypeCast TypeName CollateClause A_ArrayExpr RowExpr A_Indirection A_Indices
    RangeVar Alias JoinExpr RangeSubselect RangeFunction WithClause CommonTableExpr CTESearchClause CTECycleClause
    SortBy WindowDef GroupingSet GroupingFunc SQLValueFunction List ColumnDef
    Integer Float Boolean String BitString
    JsonObjectConstructor JsonArrayConstructor JsonArrayQueryConstructor JsonObjectAgg JsonArrayAgg JsonAggConstructor
    JsonKeyValue JsonValueExpr JsonFormat JsonOutput JsonReturning JsonIsPredicate JsonFuncExpr JsonBehavior
    JsonArgument JsonTable JsonTableColumn JsonTablePathSpec JsonParseExpr JsonScalarExpr JsonSerializeExpr
    """
)
EXPLAINING = READING | {"ExplainStmt", "DefElem"}
WRITING = READING | words(
    """
    InsertStmt UpdateStmt DeleteStmt MergeStmt MergeWhenClause MergeSupportFunc InferClause IndexElem OnConflictClause
    SetToDefault MultiAssignRef ReturningClause ReturningOption
    """
)
CHANGING = READING | words(
    """
    CreateStmt Constraint DefElem TableLikeClause PartitionSpec PartitionElem IndexStmt IndexElem ViewStmt
    CreateTableAsStmt IntoClause AlterTableStmt AlterTableCmd CreateEnumStmt CommentStmt
    """
)

OPTIONS = {
    "explain": frozenset({"costs", "verbose", "format", "summary"}),
    "ddl_batch": frozenset({"start", "increment", "minvalue", "maxvalue", "cache", "cycle", "security_invoker"}),
}
"""Options by name, of EXPLAIN and of what changes the schema."""
ADDITIONS = frozenset(
    {
        "AT_AddColumn",
        "AT_AddConstraint",
        "AT_ColumnDefault",
        "AT_SetNotNull",
        "AT_DropNotNull",
        "AT_ValidateConstraint",
    }
)
"""What ALTER TABLE may do: nothing that loses data or access."""
COMMENTED = frozenset({"OBJECT_TABLE", "OBJECT_COLUMN", "OBJECT_VIEW", "OBJECT_MATVIEW", "OBJECT_INDEX"})
INDEX_METHODS = frozenset({"", "btree", "hash", "gin", "gist", "spgist", "brin"})

INFORMATION_SCHEMA = words(
    """
    tables columns views table_constraints key_column_usage referential_constraints constraint_column_usage
    check_constraints constraint_table_usage sequences schemata
    """
)
"""Views of information_schema that a question may read: they show the tenant's own tables."""
SETTINGS = words(
    """
    server_version server_version_num server_encoding default_text_search_config search_path timezone datestyle
    intervalstyle transaction_isolation transaction_read_only
    """
)
"""Settings that SHOW may read: what the server is, and how the session that asks reads and writes values."""
REGISTERED_TYPES = words(
    """
    aclitem regclass regcollation regconfig regdatabase regdictionary regnamespace regoper regoperator regproc
    regprocedure regrole regtype
    """
)
"""Types whose values are looked up in the catalogs by name or number: they show other tenants' roles too."""
