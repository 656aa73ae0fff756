// trebuchet generate typescript Tests/Tools/ClientGeneratorTests/VectorTypes.swift --runtime ../dist/trebuchet.js
// Generated from Swift sources. Do not edit; run the command again after they change.

import { actorType, array, bigint, data, date, decimal, lazy, map, nullable, record, struct, union } from "../dist/trebuchet.js"
import type { Call, CallOptions, Codec } from "../dist/trebuchet.js"

export type AccountID = string & { readonly __brand: "AccountID" }
export function AccountID(value: string): AccountID {
    return value as AccountID
}

export interface BoxInner<Value> {
    value: Value
    others: Record<string, Value>
}

/** Payloads with and without labels, renamed, omitted when nil, and absent. */
export type Choice =
    | { load: { key: string; at: Date } }
    | { point: { _0: number; _1: number } }
    | { mixed: { _0: Date; note?: string } }
    | { moved: { target?: number } }
    | { optional: { _0?: Date } }
    | { none: Record<string, never> }
    | UnknownCase

/** A raw value given, and one implied. */
export type Colour = "red" | "grün" | "default"

export type Empty = Record<string, never>

export interface Event {
    name: string
    at: Date
    note?: string
}

export type Fahrenheit = { degrees: number }

export type Formula = { value: { _0: Decimal } } | { sum: { _0: Formula; _1: Formula } } | UnknownCase

export interface Item {
    id: UUID
    at: Date
}

export interface Keys {
    texts: Record<string, number>
    pairs: Map<Colour, Date>
    accounts: Map<AccountID, Uint8Array>
}

/** Whole numbers, given and implied. */
export type Level = -1 | 0 | 10 | 11

/** Only numbers, texts and booleans are encoded as bare raw values. */
export interface Moment {
    rawValue: Date
}

export interface Node {
    name: string
    next?: Node
}

export interface Page<Item> {
    items: Item[]
    next: Item
    cursor?: string
}

export type Plain = { on: Record<string, never> } | { off: Record<string, never> } | UnknownCase

export type Ratio = 0.5 | 1

export interface Record_ {
    name: string
    until: Date | null
    items: Item[]
}

export interface Renamed {
    is_done: boolean
    "at-what time"?: Date
    hidden: string
}

export type Rights = number & { readonly __brand: "Rights" }
export function Rights(value: number): Rights {
    return value as Rights
}

/** Object keys, unlike those of ``Colour``. */
export type Size = "small" | "large"

/** Nil optionals of a struct are omitted; a nil in two optionals may be null. */
export interface Sparse {
    a?: number
    b?: Date
    c?: number | null
    d?: (Date | null)[]
    e?: string
}

export interface Tree {
    at: Date
    children: Tree[]
}

/** Names that are invalid in other languages. */
export interface Unusual {
    class: number
    __proto__: Date
    constructor: Date
    naïve: string
    "🐶": Date
    in: Date[]
}

/** Swift's `Decimal`, as the text of the number. */
export type Decimal = string & { readonly __brand: "Decimal" }
export function Decimal(text: string): Decimal {
    return text as Decimal
}

/** A UUID in capitals, as Swift writes it. */
export type UUID = string & { readonly __brand: "UUID" }
export function UUID(text: string): UUID {
    return text.toUpperCase() as UUID
}

/** A case of a newer server that is unknown to this file. */
export interface UnknownCase {
    readonly __unknownCase?: never
}

const ChoiceCodec: Codec<Choice> = /*#__PURE__*/ union({
    load: /*#__PURE__*/ struct({ at: date }),
    mixed: /*#__PURE__*/ struct({ _0: date }),
    optional: /*#__PURE__*/ struct({ _0: date }),
})

const RenamedCodec: Codec<Renamed> = /*#__PURE__*/ struct({ "at-what time": date })

const MomentCodec: Codec<Moment> = /*#__PURE__*/ struct({ rawValue: date })

const EventCodec: Codec<Event> = /*#__PURE__*/ struct({ at: date })

const SparseCodec: Codec<Sparse> = /*#__PURE__*/ struct({
    b: date,
    d: /*#__PURE__*/ array(/*#__PURE__*/ nullable(date)),
})

const KeysCodec: Codec<Keys> = /*#__PURE__*/ struct({
    pairs: /*#__PURE__*/ map(undefined, date),
    accounts: /*#__PURE__*/ map(undefined, data),
})

const PageOfEventCodec: Codec<Page<Event>> = /*#__PURE__*/ struct({ items: /*#__PURE__*/ array(EventCodec), next: EventCodec })

const PageOfOptionalDateCodec: Codec<Page<Date | null>> = /*#__PURE__*/ struct({
    items: /*#__PURE__*/ array(/*#__PURE__*/ nullable(date)),
    next: date,
})

const BoxInnerOfDateCodec: Codec<BoxInner<Date>> = /*#__PURE__*/ struct({ value: date, others: /*#__PURE__*/ record(date) })

const TreeCodec: Codec<Tree> = /*#__PURE__*/ struct({
    at: date,
    children: /*#__PURE__*/ array(/*#__PURE__*/ lazy(() => TreeCodec)),
})

const FormulaCodec: Codec<Formula> = /*#__PURE__*/ union({
    value: /*#__PURE__*/ struct({ _0: decimal }),
    sum: /*#__PURE__*/ struct({ _0: /*#__PURE__*/ lazy(() => FormulaCodec), _1: /*#__PURE__*/ lazy(() => FormulaCodec) }),
})

const ItemCodec: Codec<Item> = /*#__PURE__*/ struct({ at: date })

const Record_Codec: Codec<Record_> = /*#__PURE__*/ struct({ until: date, items: /*#__PURE__*/ array(ItemCodec) })

const UnusualCodec: Codec<Unusual> = /*#__PURE__*/ struct({
    ["__proto__"]: date,
    constructor: date,
    "🐶": date,
    in: /*#__PURE__*/ array(date),
})

/** A value of each row, under the name of the method that receives and returns it. */
export const Vectors = /*#__PURE__*/ actorType<{
    methods: {
        text(value: string, options?: CallOptions): Call<string>
        flag(value: boolean, options?: CallOptions): Call<boolean>
        whole(value: number, options?: CallOptions): Call<number>
        byte(value: number, options?: CallOptions): Call<number>
        double(value: number, options?: CallOptions): Call<number>
        wide(value: bigint, options?: CallOptions): Call<bigint>
        unsigned(value: bigint[], options?: CallOptions): Call<bigint[]>
        decimal(value: Decimal, options?: CallOptions): Call<Decimal>
        date(value: Date, options?: CallOptions): Call<Date>
        dates(value: (Date | null)[], options?: CallOptions): Call<(Date | null)[]>
        data(value: Uint8Array, options?: CallOptions): Call<Uint8Array>
        uuid(value: UUID, options?: CallOptions): Call<UUID>
        url(value: string, options?: CallOptions): Call<string>
        maybe(value: number | null, options?: CallOptions): Call<number | null>
        maybeDate(value: Date | null, options?: CallOptions): Call<Date | null>
        nested(value: (number | null)[], options?: CallOptions): Call<(number | null)[]>
        list(value: string[], options?: CallOptions): Call<string[]>
        only(value: number[], options?: CallOptions): Call<number[]>
        range(value: [number, number], options?: CallOptions): Call<[number, number]>
        span(value: [Date, Date], options?: CallOptions): Call<[Date, Date]>
        byName(value: Record<string, Date>, options?: CallOptions): Call<Record<string, Date>>
        byNumber(value: Record<number, string>, options?: CallOptions): Call<Record<number, string>>
        byColour(value: Map<Colour, Date>, options?: CallOptions): Call<Map<Colour, Date>>
        bySize(value: Partial<Record<Size, Date>>, options?: CallOptions): Call<Partial<Record<Size, Date>>>
        byID(value: Map<UUID, number>, options?: CallOptions): Call<Map<UUID, number>>
        byByte(value: Map<number, Date>, options?: CallOptions): Call<Map<number, Date>>
        colour(value: Colour, options?: CallOptions): Call<Colour>
        tolerant(value: Colour[], options?: CallOptions): Call<Colour[]>
        level(value: Level, options?: CallOptions): Call<Level>
        ratio(value: Ratio, options?: CallOptions): Call<Ratio>
        choice(value: Choice[], options?: CallOptions): Call<Choice[]>
        plain(value: Plain[], options?: CallOptions): Call<Plain[]>
        renamed(value: Renamed[], options?: CallOptions): Call<Renamed[]>
        account(value: AccountID, options?: CallOptions): Call<AccountID>
        rights(value: Rights, options?: CallOptions): Call<Rights>
        moment(value: Moment, options?: CallOptions): Call<Moment>
        event(value: Event, options?: CallOptions): Call<Event>
        sparse(value: Sparse[], options?: CallOptions): Call<Sparse[]>
        keys(value: Keys, options?: CallOptions): Call<Keys>
        page(value: Page<Event>, options?: CallOptions): Call<Page<Event>>
        optionalPage(value: Page<Date | null>, options?: CallOptions): Call<Page<Date | null>>
        box(value: BoxInner<Date>, options?: CallOptions): Call<BoxInner<Date>>
        tree(value: Tree, options?: CallOptions): Call<Tree>
        formula(value: Formula, options?: CallOptions): Call<Formula>
        record(value: Record_, options?: CallOptions): Call<Record_>
        keyed(value: Item[], options?: CallOptions): Call<Item[]>
        identified(value: Item[], options?: CallOptions): Call<Item[]>
        node(value: Node, options?: CallOptions): Call<Node>
        unusual(value: Unusual, options?: CallOptions): Call<Unusual>
        empty(value: Empty, options?: CallOptions): Call<Empty>
        own(value: Fahrenheit, options?: CallOptions): Call<Fahrenheit>
        ids(value: UUID, options?: CallOptions): Call<UUID>
    }
}>({
    name: "Vectors",
    methods: {
        text: { target: "text(_:)" },
        flag: { target: "flag(_:)" },
        whole: { target: "whole(_:)" },
        byte: { target: "byte(_:)" },
        double: { target: "double(_:)" },
        wide: { target: "wide(_:)", arguments: [bigint], result: bigint },
        unsigned: { target: "unsigned(_:)", arguments: [/*#__PURE__*/ array(bigint)], result: /*#__PURE__*/ array(bigint) },
        decimal: { target: "decimal(_:)", arguments: [decimal], result: decimal },
        date: { target: "date(_:)", arguments: [date], result: date },
        dates: { target: "dates(_:)", arguments: [/*#__PURE__*/ array(/*#__PURE__*/ nullable(date))], result: /*#__PURE__*/ array(/*#__PURE__*/ nullable(date)) },
        data: { target: "data(_:)", arguments: [data], result: data },
        uuid: { target: "uuid(_:)" },
        url: { target: "url(_:)" },
        maybe: { target: "maybe(_:)" },
        maybeDate: { target: "maybeDate(_:)", arguments: [/*#__PURE__*/ nullable(date)], result: /*#__PURE__*/ nullable(date) },
        nested: { target: "nested(_:)" },
        list: { target: "list(_:)" },
        only: { target: "only(_:)" },
        range: { target: "range(_:)" },
        span: { target: "span(_:)", arguments: [/*#__PURE__*/ array(date)], result: /*#__PURE__*/ array(date) },
        byName: { target: "byName(_:)", arguments: [/*#__PURE__*/ record(date)], result: /*#__PURE__*/ record(date) },
        byNumber: { target: "byNumber(_:)" },
        byColour: { target: "byColour(_:)", arguments: [/*#__PURE__*/ map(undefined, date)], result: /*#__PURE__*/ map(undefined, date) },
        bySize: { target: "bySize(_:)", arguments: [/*#__PURE__*/ record(date)], result: /*#__PURE__*/ record(date) },
        byID: { target: "byID(_:)", arguments: [/*#__PURE__*/ map()], result: /*#__PURE__*/ map() },
        byByte: { target: "byByte(_:)", arguments: [/*#__PURE__*/ map(undefined, date)], result: /*#__PURE__*/ map(undefined, date) },
        colour: { target: "colour(_:)" },
        tolerant: { target: "tolerant(_:)" },
        level: { target: "level(_:)" },
        ratio: { target: "ratio(_:)" },
        choice: { target: "choice(_:)", arguments: [/*#__PURE__*/ array(ChoiceCodec)], result: /*#__PURE__*/ array(ChoiceCodec) },
        plain: { target: "plain(_:)" },
        renamed: { target: "renamed(_:)", arguments: [/*#__PURE__*/ array(RenamedCodec)], result: /*#__PURE__*/ array(RenamedCodec) },
        account: { target: "account(_:)" },
        rights: { target: "rights(_:)" },
        moment: { target: "moment(_:)", arguments: [MomentCodec], result: MomentCodec },
        event: { target: "event(_:)", arguments: [EventCodec], result: EventCodec },
        sparse: { target: "sparse(_:)", arguments: [/*#__PURE__*/ array(SparseCodec)], result: /*#__PURE__*/ array(SparseCodec) },
        keys: { target: "keys(_:)", arguments: [KeysCodec], result: KeysCodec },
        page: { target: "page(_:)", arguments: [PageOfEventCodec], result: PageOfEventCodec },
        optionalPage: { target: "optionalPage(_:)", arguments: [PageOfOptionalDateCodec], result: PageOfOptionalDateCodec },
        box: { target: "box(_:)", arguments: [BoxInnerOfDateCodec], result: BoxInnerOfDateCodec },
        tree: { target: "tree(_:)", arguments: [TreeCodec], result: TreeCodec },
        formula: { target: "formula(_:)", arguments: [FormulaCodec], result: FormulaCodec },
        record: { target: "record(_:)", arguments: [Record_Codec], result: Record_Codec },
        keyed: { target: "keyed(_:)", arguments: [/*#__PURE__*/ array(ItemCodec)], result: /*#__PURE__*/ array(ItemCodec) },
        identified: { target: "identified(_:)", arguments: [/*#__PURE__*/ array(ItemCodec)], result: /*#__PURE__*/ array(ItemCodec) },
        node: { target: "node(_:)" },
        unusual: { target: "unusual(_:)", arguments: [UnusualCodec], result: UnusualCodec },
        empty: { target: "empty(_:)" },
        own: { target: "own(_:)" },
        ids: { target: "ids(_:)" },
    },
})
