import type { Backend } from "./backend.js"
import { needSame } from "./build.js"
import type { LiveCollection } from "./collection.js"
import type { Outcome, PendingWrite, PendingWrites } from "./pending-writes.js"
import { pauseAfter, reasonOf, wait } from "./rejections.js"
import { sentenceOf } from "./error-messages.js"
import { type Client, type JSONCoder, TrebuchetError } from "./trebuchet.js"

/** The maximum number of writes, and of their bytes, that the server accepts at once. */
const batchLimit = 32
const batchBytes = 256 << 10

/** Returns the next writes to send: the first without a response, including writes that were sent before, all of one tab. */
export function batchOf(writes: PendingWrites, limit = batchLimit, json: JSONCoder = JSON): PendingWrite[] {
    const { _waiting: waiting } = writes
    let bytes = 0
    const end = waiting.findIndex((write, index) => {
        if (index === limit || write.isBeingStored || write.secret !== waiting[0]!.secret) return true
        bytes += json.stringify(write.commands).length
        return index && bytes > batchBytes
    })
    return end < 0 ? waiting : waiting.slice(0, end)
}

/**
 * Sends the waiting writes of an account in order, one batch at a time, each until it has a response. The backend is a separate parameter:
 * its name in a collection of another version may differ.
 */
export async function send(backend: Backend, collection: LiveCollection, account: string, writes: PendingWrites): Promise<void> {
    needSame(backend)
    let own: Client | undefined
    /** The number of writes to send one by one: the server has refused all of them together, perhaps because it cannot read one of them. */
    let singleCount = 0
    try {
        for (let failures = 0; collection._isTurnOf(account); ) {
            const batch = batchOf(writes, singleCount ? 1 : undefined, backend._json)
            if (!batch.length) return
            for (const write of batch) write.wasSent = true
            if (account !== backend._account) own ??= backend._anonymous()
            const client = own ?? backend.client
            const line = backend._line
            const { secret } = batch[0]!
            const mutations = batch.map(({ number, commands }) => ({ number, commands }))
            let outcomes: Outcome[]
            try {
                outcomes = await collection._call("commit(_:from:as:)", [mutations, secret, account], own ? 30_000 : 0, client)
            } catch (error: any) {
                const pause = pauseAfter(error, failures++, account)
                if (pause !== undefined) {
                    await wait(pause)
                    // The connection belongs to another account: to the session of another tab, or to an earlier one.
                    if (reasonOf(error) === "otherAccount" && collection._isTurnOf(account) && !own) backend.client.reconnect()
                    continue
                }
                if (batch[1]) {
                    singleCount = batch.length
                    continue
                }
                outcomes = batch.map(({ number }) => ({ number, revision: 0, error }))
            }
            failures = 0
            if (singleCount) singleCount--
            // Query numbers are valid on one connection.
            if (!own && line === backend._line) applyPositions(collection, outcomes)
            await settle(collection, writes, secret, outcomes)
        }
    } finally {
        if (own) backend._leave(own)
    }
}

function applyPositions(collection: LiveCollection, outcomes: Outcome[]): void {
    const through = Math.max(...outcomes.map(({ revision }) => revision))
    const { shown = {} } = outcomes.at(-1) ?? {}
    for (const query of collection._open) query._applyPositions(shown, through)
}

/** Records a response. A refused write is removed. Returns the write. */
export function settleOne(writes: PendingWrites, secret: string, { number, revision, error }: Outcome): PendingWrite | undefined {
    const write = writes._all.find((each) => each.secret === secret && each.number === number)
    if (write && !error) write.revision = revision
    else writes._remove(write)
    return write
}

async function settle(collection: LiveCollection, writes: PendingWrites, secret: string, outcomes: Outcome[]): Promise<void> {
    const settled = outcomes.map((outcome) => ({ ...outcome, _write: settleOne(writes, secret, outcome) }))
    collection._forgetSeen()
    collection._show()
    for (const { error, index, _write: write } of settled) {
        if (!write) continue
        if (error) {
            const refusal = error instanceof Error ? error : new TrebuchetError("application", sentenceOf(error), "TrebuchetServices.CollectionError", error)
            collection._refused(write, refusal as TrebuchetError, index)
        } else write._end?.()
    }
    // This precedes the next batch: the server remembers a limited number of outcomes. A write that stays in the store is sent again, and
    // not performed again.
    await collection._backend._store?.remove(outcomes.map(({ number }) => ({ secret, number }))).catch(() => {})
}
