import assert from "node:assert/strict"
import test from "node:test"
import { MoveCheck } from "./consistency/checks.mjs"

const move = (life, number, call) => ({ life, number, call, padding: "" })

/** The findings of a reader of these events; it is notified of an overflow between incarnations. */
function found(mayRunAgain, moves) {
    const check = new MoveCheck(mayRunAgain)
    return moves.map((each) => {
        if (each.life !== check.life) check.overflowed()
        return check.take(each)
    })
}

test("a call may send its event once in each incarnation of its game, where it may run again", () => {
    const moves = [move(1, 1, 5), move(2, 1, 0), move(2, 2, 5)]
    assert.deepEqual(found(true, moves), [undefined, undefined, undefined])
    assert.match(found(true, [...moves, move(2, 3, 5)])[3], /call 5 has sent two events/)
    assert.match(found(false, moves)[2], /call 5 has sent two events/)
})
