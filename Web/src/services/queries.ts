import type { Document, QueryOptions, Where } from "./types.js"
import { comparePositions, compareTexts, isRecord, isSame, kindOf } from "./values.js"

/** A condition in its wire form. */
export type Condition = { field: string; comparison: string; value: unknown } | { any: Condition[][] }

/** A query in its wire form. */
export interface WireQuery {
    conditions: Condition[]
    order: { field: string; isDescending: boolean }[]
    limit?: number
    after?: string
    counts?: boolean
}

function conditionsOf(where: Where = {}): Condition[] {
    return Object.entries(where).flatMap(([field, test]: [string, any]): Condition[] => {
        if (field === "$any") return [{ any: test.map(conditionsOf) }]
        // An undefined value is null, as in a document; an omitted condition would match every document.
        if (!isRecord(test)) return [{ field, comparison: "equal", value: test ?? null }]
        return Object.entries(test as object).map(([comparison, value]) => ({ field, comparison, value: value ?? null }))
    })
}

export function wireQuery({ where, order = [], limit, after, counts }: QueryOptions): WireQuery {
    return {
        conditions: conditionsOf(where),
        order: [order].flat().map((field) => ({ field: field.replace(/^-/, ""), isDescending: field[0] === "-" })),
        // Undefined options are absent on the wire.
        ...({ limit, after, counts } as object),
    }
}

/** Returns the value at a path in a document: `a.b`. A `\` makes a dot part of a name; a leading `$` selects server metadata. */
function valueAt(document: any, path: string): any {
    if (path[0] === "$") return document[path.slice(1)]
    const names = path.match(/(\\.|[^.\\])+/gs) ?? [path]
    return names.reduce((value, name) => {
        const own = name.replace(/\\(.)/gs, "$1")
        return isRecord(value) && Object.hasOwn(value, own) ? value[own] : undefined
    }, document.fields)
}

function holds(document: Document, condition: Condition): boolean {
    if ("any" in condition) return condition.any.some((group) => matches(document, group))
    const { comparison, value }: any = condition
    const present = valueAt(document, condition.field)
    if (comparison === "contains") return Array.isArray(present) && present.some((each) => isSame(each, value))
    if (comparison === "in") return value.some((each: unknown) => isSame(present, each))
    if (comparison === "prefix") return typeof present === "string" && present.startsWith(value)
    if (/qual$/.test(comparison) && comparison.length < 9) return isSame(present, value) === (comparison === "equal")
    // Numbers compare only with numbers, and texts only with texts.
    const kind = kindOf(present)
    if (kind !== kindOf(value) || (kind !== 2 && kind !== 3)) return false
    const order = comparePositions(present, value)
    return order ? order < 0 === (comparison[0] === "l") : /E/.test(comparison)
}

export const matches = (document: Document, conditions: Condition[]): boolean => conditions.every((each) => holds(document, each))

/** Returns true if one document precedes another. */
export function precedes(one: Document, other: Document, order: WireQuery["order"]): boolean {
    for (const { field, isDescending } of order) {
        const sign = comparePositions(valueAt(one, field), valueAt(other, field))
        if (sign) return sign < 0 !== isDescending
    }
    return (one.created - other.created || compareTexts(one.id, other.id)) < 0
}
