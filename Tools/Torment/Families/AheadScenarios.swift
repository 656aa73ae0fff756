/// Correct clients far ahead of their responses. Half of them never read.
enum AheadScenarios {
    static func make(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...2)
        return (0..<count).map { _ in dice.chance(70) ? right(&dice) : silent(&dice) }
    }

    /// - Parameter most: the maximum of requested MiB.
    private static func call(_ dice: inout Dice, most: Int = 8) -> (call: Envelope, count: Int) {
        let bytes = min(dice.pick([1, 2, 4, 8]), most) << 20
        switch dice.int(1...4) {
        case 1: return (.call("sum(_:_:)", ["#", "2"], of: actor(&dice)), min(bytes / 100, 20_000))
        case 2:
            let size = dice.pick([100, 1_000, 10_000, 60_000, 100_000])
            return (.call("echo(_:)", [StepText("\"<e*\(size)>\"")], of: actor(&dice)), bytes / (size + 100))
        case 3:
            let size = dice.pick([1_000, 20_000, 200_000])
            return (.call("text(_:)", [StepText("\(size)")], of: actor(&dice)), bytes / size)
        default:
            // Large messages with small responses.
            let size = dice.pick([1_000, 30_000])
            return (.call("nothing()", of: actor(&dice)).with("unknown", text: StepText("<u*\(size)>")), bytes / size)
        }
    }

    private static func actor(_ dice: inout Dice) -> StepText { dice.pick(["victim", "room/1", "room/2", "room/3"]) }

    private static func right(_ dice: inout Dice) -> Scenario {
        let buffer = dice.chance(60) ? dice.pick([32_768, 65_536]) : nil
        var steps: [Step] = buffer.map { [.receiveBuffer($0)] } ?? []
        steps.append(.upgrade(version: 3))
        // The kernel may need a second for some kilobytes in a small buffer, and drops packets for still smaller ones.
        let (call, count) = call(&dice, most: buffer ?? .max < 65_536 ? 1 : 8)
        steps.append(.ask(call.text, milliseconds: 10_000, count: max(1, count)))
        if dice.chance(30) { steps.append(.pause(milliseconds: dice.int(1...300))) }
        return Scenario(steps + [.settle] + dice.pick([[], [.reset], [.bye(1000)]]))
    }

    private static func silent(_ dice: inout Dice) -> Scenario {
        let (call, count) = call(&dice)
        return Scenario(
            [.receiveBuffer(dice.pick([1_024, 65_536])), .upgrade(version: 3), .say(call.text, count: max(1, count))]
                + dice.pick([
                    [.reset], [.leave], [.close], [.pause(milliseconds: 300), .reset],
                    [.listen(milliseconds: 500), .reset],
                ]))
    }
}
