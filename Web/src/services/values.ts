import { equal } from "./trebuchet.js"

/** As exact numbers have it, which come from another file. */
const numberMark = Symbol.for("trebuchet.number")

/** The place of a value among others by its kind: absent and null, booleans, numbers, texts, arrays, objects. */
export const kindOf = (value: any): number =>
    value == null
        ? 0
        : Array.isArray(value)
        ? 4
        : // An exact number; what else writes itself as JSON is as little an object with members.
        typeof value.toJSON === "function"
        ? 2
        : ({ boolean: 1, number: 2, bigint: 2, string: 3 } as Record<string, number>)[typeof value] ?? 5

export const isRecord = (value: any): boolean => kindOf(value) === 5

/** As long as a text is in order by its bytes in UTF-8, which JavaScript's own order is not for characters beyond 16 bits. */
const sortable = (text: string): string => text.replace(/[\ue000-\uffff]/g, "\ud7ff$&")

export function compareTexts(one: string, other: string): number {
    const [left, right] = [sortable(one), sortable(other)]
    return left < right ? -1 : +(left > right)
}

/** The order of places by a value: as by `kindOf`, and among booleans, numbers and texts. */
export function comparePlaces(one: any, other: any): number {
    const kind = kindOf(one)
    return kind - kindOf(other) || (kind === 3 ? compareTexts(one, other) : (kind < 3 && one - other) || 0)
}

/** Members that are null are none. */
export const withoutNull = (members: object): any => Object.fromEntries(Object.entries(members).filter(([, member]) => member !== null))

/** A value as a merge patch makes it (RFC 7396); neither is changed. */
export function merged(value: any, patch: any): any {
    if (!isRecord(patch)) return patch
    const own = isRecord(value) ? value : {}
    const members = Object.entries(withoutNull({ ...own, ...patch }))
    return Object.fromEntries(members.map(([name, member]) => [name, Object.hasOwn(patch, name) ? merged(own[name], member) : member]))
}

/** A copy, for what the app does with its own afterwards, as JSON has it, but for numbers that a double cannot hold. */
export function copied(value: any, change: (value: any) => any = (value) => value): any {
    if (typeof value?.toJSON === "function" && !value[numberMark]) value = value.toJSON()
    value = change(value)
    // What is undefined is null in an array and absent in an object, as in JSON.
    if (Array.isArray(value)) return value.map((each) => copied(each, change) ?? null)
    if (!isRecord(value)) return value
    const members = Object.entries(value).filter(([, member]) => member !== undefined)
    return Object.fromEntries(members.map(([name, member]) => [name, copied(member, change)]))
}

/** Whether two values are equal as JSON; null and absent are. */
export const isSame = (one: unknown, other: unknown): boolean => equal(one ?? null, other ?? null)
