import { equal } from "./trebuchet.js"

/** The mark of exact numbers, which come from another file. */
const numberMark = Symbol.for("trebuchet.number")

/** Returns the sort rank of a value by its kind: absent and null, booleans, numbers, texts, arrays, objects. */
export const kindOf = (value: any): number =>
    value == null
        ? 0
        : Array.isArray(value)
        ? 4
        : // An exact number; other values with `toJSON` are not objects with members, either.
        typeof value.toJSON === "function"
        ? 2
        : ({ boolean: 1, number: 2, bigint: 2, string: 3 } as Record<string, number>)[typeof value] ?? 5

export const isRecord = (value: any): boolean => kindOf(value) === 5

/** Returns a text that sorts by its bytes in UTF-8. JavaScript's own order differs for characters beyond 16 bits. */
const sortable = (text: string): string => text.replace(/[\ue000-\uffff]/g, "\ud7ff$&")

export function compareTexts(one: string, other: string): number {
    const [left, right] = [sortable(one), sortable(other)]
    return left < right ? -1 : +(left > right)
}

/** Compares two values in sort order: by `kindOf`, then by value among booleans, numbers and texts. */
export function comparePositions(one: any, other: any): number {
    const kind = kindOf(one)
    return kind - kindOf(other) || (kind === 3 ? compareTexts(one, other) : (kind < 3 && one - other) || 0)
}

/** Returns the members that are not null. */
export const withoutNull = (members: object): any => Object.fromEntries(Object.entries(members).filter(([, member]) => member !== null))

/** Returns the result of a merge patch (RFC 7396); neither argument is changed. */
export function merged(value: any, patch: any): any {
    if (!isRecord(patch)) return patch
    const own = isRecord(value) ? value : {}
    const members = Object.entries(withoutNull({ ...own, ...patch }))
    return Object.fromEntries(members.map(([name, member]) => [name, Object.hasOwn(patch, name) ? merged(own[name], member) : member]))
}

/** Returns a copy in JSON's form, which later changes by the app do not affect. Numbers that a double cannot hold are preserved. */
export function copied(value: any, change: (value: any) => any = (value) => value): any {
    if (typeof value?.toJSON === "function" && !value[numberMark]) value = value.toJSON()
    value = change(value)
    // An undefined value is null in an array and absent in an object, as in JSON.
    if (Array.isArray(value)) return value.map((each) => copied(each, change) ?? null)
    if (!isRecord(value)) return value
    const members = Object.entries(value).filter(([, member]) => member !== undefined)
    return Object.fromEntries(members.map(([name, member]) => [name, copied(member, change)]))
}

/** Returns true if two values are equal as JSON; null equals absent. */
export const isSame = (one: unknown, other: unknown): boolean => equal(one ?? null, other ?? null)
