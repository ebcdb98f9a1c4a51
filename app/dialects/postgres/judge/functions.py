"""Functions of PostgreSQL that a question may use: they compute, and touch nothing beyond their arguments.

Left out on purpose: what reads files, settings or catalogs, sleeps, locks, signals, writes, or executes SQL that it is
given as text (`query_to_xml`, `ts_stat`, the two-argument `ts_rewrite`, `dblink`).
"""

from app.dialects.word_lists import words

_AGGREGATES = """
any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp every json_agg
json_agg_strict json_object_agg json_object_agg_strict json_object_agg_unique jsonb_agg jsonb_agg_strict
jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique max min mode percentile_cont percentile_disc range_agg
range_intersect_agg regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev
stddev_pop stddev_samp string_agg sum var_pop var_samp variance
"""
_WINDOWS = """
cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
"""
_NUMBERS = """
abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling cos cosd cosh cot cotd degrees div
erf erfc exp factorial floor gamma gcd lcm lgamma ln log log10 min_scale mod numeric pi power radians random
random_normal round scale sign sin sind sinh sqrt tan tand tanh to_bin to_hex to_oct trim_scale trunc width_bucket
"""
_TEXT = """
ascii bit_count bit_length btrim casefold char_length character_length chr concat concat_ws convert convert_from
convert_to crc32 crc32c decode encode format get_bit get_byte initcap is_normalized left length like_escape lower lpad
ltrim md5 normalize notlike octet_length overlay parse_ident position quote_ident quote_literal quote_nullable
regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array
regexp_split_to_table regexp_substr repeat replace reverse right rpad rtrim set_bit set_byte sha224 sha256 sha384
sha512 similar_escape similar_to_escape split_part starts_with string_to_array string_to_table strpos substr substring
to_ascii to_char to_number translate trim unicode_assigned unistr upper
"""
_TIMES = """
age clock_timestamp date date_add date_bin date_part date_subtract date_trunc extract isfinite justify_days
justify_hours justify_interval make_date make_interval make_time make_timestamp make_timestamptz now overlaps
statement_timestamp timeofday timezone to_date to_timestamp transaction_timestamp
"""
_COLLECTIONS = """
array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions
array_prepend array_remove array_replace array_reverse array_sample array_shuffle array_sort array_to_string
array_upper cardinality generate_series generate_subscripts num_nonnulls num_nulls trim_array unnest
isempty lower_inc lower_inf range_merge multirange upper_inc upper_inf int4range int8range numrange tsrange tstzrange
daterange
"""
_JSON = """
array_to_json json_array json_array_elements json_array_elements_text json_array_length json_build_array
json_build_object json_each json_each_text json_extract_path json_extract_path_text json_object json_object_keys
json_populate_record json_populate_recordset json_scalar json_serialize json_strip_nulls json_to_record
json_to_recordset json_typeof jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array
jsonb_build_object jsonb_concat jsonb_contains jsonb_each jsonb_each_text jsonb_exists jsonb_extract_path
jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_keys jsonb_path_exists jsonb_path_match jsonb_path_query
jsonb_path_query_array jsonb_path_query_first jsonb_populate_record jsonb_populate_recordset jsonb_pretty jsonb_set
jsonb_set_lax jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_typeof row_to_json to_json to_jsonb
"""
_OTHERS = """
abbrev broadcast family host hostmask inet_merge inet_same_family macaddr8_set7bit masklen netmask network
set_masklen text
area center diagonal diameter height isclosed isopen npoints path pclose point polygon popen radius slope width
bound_box box circle line lseg
to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_rank ts_rank_cd ts_headline numnode
querytree setweight strip array_to_tsvector tsvector_to_array json_to_tsvector jsonb_to_tsvector tsquery_phrase
ts_delete ts_filter
gen_random_uuid uuidv4 uuidv7 uuid_extract_timestamp uuid_extract_version
coalesce nullif greatest least current_database current_schema grouping
"""

READING = words(" ".join((_AGGREGATES, _WINDOWS, _NUMBERS, _TEXT, _TIMES, _COLLECTIONS, _JSON, _OTHERS)))
WRITING = READING | {"nextval", "currval", "merge_action"}
"""A row's next number may be drawn where a row is written."""
