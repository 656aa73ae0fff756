// Checks of the values that readers of the games of Tools/Consistency receive, like Checks/*.swift there. Each check returns the problem of a
// value; undefined for none.

const eventBuffer = 512

export const points = (call) => (call % 7) + 1

/** FNV-1a. */
export function digest(text) {
    let hash = 0xcbf29ce484222325n
    for (const byte of new TextEncoder().encode(text)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn
    return hash.toString(16)
}

export const ledgerDigest = ({ calls, points, isClosed }) => digest(`[${calls.join(", ")}] ${points} ${isClosed}`)

export function boardDigest({ life, turn, points, sentBytes, isClosed, cells }) {
    const list = cells.map(({ id, points }) => `"${id}:${points}"`).join(", ")
    return digest(`${life} ${turn} ${points} ${sentBytes} ${isClosed} [${list}]`)
}

export class LedgerCheck {
    last = { calls: [] }

    take(ledger) {
        const before = this.last
        this.last = ledger
        const { calls } = ledger
        if (ledger.points !== calls.reduce((sum, call) => sum + points(call), 0)) return `a ledger of ${calls.length} calls whose points are of another one`
        if (calls.length < before.calls.length) return `the ledger went back from ${before.calls.length} calls to ${calls.length}`
        if (before.calls.some((call, index) => call !== calls[index])) return "calls that were in the ledger have changed"
    }
}

export class BoardCheck {
    life = 0
    turn = -1
    ended = new Set()

    take(board) {
        if (board.points !== board.cells.reduce((sum, cell) => sum + cell.points, 0)) return `a board of turn ${board.turn} whose cells are of another one`
        const { life, turn } = this
        this.turn = board.turn
        if (board.life !== life) {
            this.ended.add(life)
            this.life = board.life
            return this.ended.has(board.life) ? "the board went back to a life that had ended" : undefined
        }
        if (board.turn <= turn) return `the board went from turn ${turn} to ${board.turn}`
    }
}

export class RoundCheck {
    life = 0
    number = -1
    ended = new Set()
    isAfterOverflow = false

    take(round) {
        const { life, number, isAfterOverflow } = this
        Object.assign(this, { life: round.life, number: round.number, isAfterOverflow: false })
        if (round.life !== life) {
            this.ended.add(life)
            return this.ended.has(round.life) ? "the rounds went back to a life that had ended" : undefined
        }
        // A restarted stream begins with the current value.
        if (isAfterOverflow) return round.number < number ? `the rounds went back from ${number} to ${round.number}` : undefined
        if (round.number !== number + 1) return `round ${round.number} came after ${number}`
    }
}

export class MoveCheck {
    /** @param mayRunAgain whether a call without a record may run again at another owner of the game */
    constructor(mayRunAgain) {
        this.mayRunAgain = mayRunAgain
    }

    life = 0
    number = 0
    ended = new Set()
    calls = new Set()
    isFirst = true
    isAfterOverflow = false
    count = 0
    bytes = 0
    overflowsOfNewIncarnations = 0
    overflowsOfConnections = 0

    overflowed() {
        this.isFirst = this.isAfterOverflow = true
    }

    take(move) {
        const { life, number, isFirst, isAfterOverflow } = this
        Object.assign(this, { life: move.life, number: move.number, isFirst: false, isAfterOverflow: false })
        this.count++
        this.bytes += move.padding.length
        if (this.mayRunAgain && move.life !== life) this.calls.clear()
        if (move.call > 0) {
            if (this.calls.has(move.call)) return `call ${move.call} has sent two events`
            this.calls.add(move.call)
        }
        if (move.life !== life) {
            this.ended.add(life)
            if (this.ended.has(move.life)) return "the events went back to a life that had ended"
            if (!isFirst) return `event ${move.number} of another life came after ${number}, and no overflow between`
            if (isAfterOverflow) this.overflowsOfNewIncarnations++
            return
        }
        if (!isFirst) return move.number === number + 1 ? undefined : `event ${move.number} came after ${number}`
        if (move.number <= number) return `event ${move.number} came after ${number}, in a stream that began later`
        if (!isAfterOverflow) return
        this.overflowsOfConnections++
        const missed = move.number - number - 1
        if (missed <= eventBuffer) return `the server reported an overflow after ${number}, but only ${missed} events were missed`
    }
}
