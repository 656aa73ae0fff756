import { Command, idOf, perform } from "./commands.js"
import { isWaiting, type PendingWrite } from "./pending-writes.js"
import { matches, precedes, WireQuery } from "./queries.js"
import type { Document } from "./types.js"

/** The result of a query, as the server sends it. */
export interface WireResult {
    readonly revision: number
    readonly hasMore: boolean
    readonly count?: number
    readonly documents: readonly Document[]
}

/** Documents by id; undefined for an absent document. */
export type Documents = Map<string, Document | undefined>

/** A number greater than the numbers of all writes of the server. */
const createdHere = 2 ** 52

const byID = (documents: readonly Document[] = []): Documents => new Map(documents.map((each) => [each.id, each]))

/** The last result of each command, with its input. Each command is performed once, and not again for each later write that waits. */
const made = new WeakMap<Command, [before: Document | undefined, number: number, after: Document | undefined]>()

function performOnce(command: Command, document: Document | undefined, number: number, { time, account }: PendingWrite): Document | undefined {
    const last = made.get(command)
    if (last && last[0] === document && last[1] === number) return last[2]
    const after = perform(command, document, number, time, account)
    made.set(command, [document, number, after])
    return after
}

/**
 * Returns the documents that writes change. A write with a failing command is skipped as a whole: the server may have performed it already,
 * before its response arrives.
 */
function performAll(writes: PendingWrite[], documents: Documents, isLeftOut: (command: Command, write: PendingWrite) => boolean): Documents {
    const touched: Documents = new Map()
    writes.forEach((write, place) => {
        const changed: Documents = new Map()
        try {
            for (const command of write.commands) {
                const id = idOf(command)
                if (isLeftOut(command, write)) continue
                const before = [changed, touched].find((each) => each.has(id)) ?? documents
                changed.set(id, performOnce(command, before.get(id), createdHere + place, write))
            }
        } catch {
            return
        }
        for (const [id, document] of changed) touched.set(id, document)
    })
    return touched
}

const isUncertain = (write: PendingWrite): unknown => write.wasSent && isWaiting(write)

/**
 * The earlier documents of sent writes that have no response and depend on the earlier value, such as increments. A result that arrives in
 * the meantime may or may not include those writes. Until their responses, the writes are shown over the earlier documents. Pure.
 */
export class Uncertain {
    _documents: Documents = new Map()
    private _since: PendingWrite | undefined

    /** Records documents of a result before a newer result replaces it; `result` shows all writes up to `seen`. */
    _keep(result: WireResult | undefined, seen: number, writes: PendingWrite[]): void {
        this._forget(writes)
        this._since = writes.find(isUncertain)
        const documents = byID(result?.documents)
        for (const { increment } of writes.filter(isUncertain).flatMap(({ commands }) => commands)) {
            const id = increment?.id
            if (!increment || this._documents.has(id)) continue
            const touched = performAll(writes.filter(({ revision }) => revision! > seen), documents, (each) => idOf(each) !== id)
            this._documents.set(id, (touched.has(id) ? touched : documents).get(id))
        }
    }

    /** Discards the documents once writes have their responses. */
    _forget(writes: PendingWrite[]): void {
        if (writes.find(isUncertain) !== this._since) this._documents = new Map()
    }
}

/**
 * Returns the documents of a result with the waiting writes applied. The result itself stays as the server sent it. A newer result
 * therefore never undoes a waiting write, and a refused write has no lasting effect. Pure.
 *
 * @param seen the last write that the result shows; -1 before the first result.
 * @param retained documents that replace those of the result, see `Uncertain`.
 */
export function overlay(result: WireResult, query: WireQuery, writes: PendingWrite[], seen: number, retained: Documents = new Map()): readonly Document[] {
    const { documents, hasMore } = result
    const known = byID(documents)
    const touched = performAll(
        writes.filter(({ revision = Infinity }) => revision > seen),
        new Map([...known, ...retained]),
        (command, write) => !isWaiting(write) && retained.has(idOf(command))
    )
    if (!touched.size) return documents
    const { order, limit, after } = query
    const shown = documents.filter(({ id }) => !touched.has(id))
    for (const document of touched.values()) {
        if (!document || !matches(document, query.conditions)) continue
        // Documents that are unknown here may precede a new one: behind the result, and before a result that begins after a cursor.
        const isHidden = (hasMore && documents[0] && precedes(documents.at(-1)!, document, order)) || (after && !(documents[0] && precedes(documents[0], document, order)))
        if (isHidden && !known.has(document.id)) continue
        // The document is inserted before the first one that it precedes.
        let [place, end] = [0, shown.length]
        while (place < end) {
            const middle = (place + end) >> 1
            if (precedes(document, shown[middle]!, order)) end = middle
            else place = middle + 1
        }
        shown.splice(place, 0, document)
    }
    return shown.slice(0, limit)
}
