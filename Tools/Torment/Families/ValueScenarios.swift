/// Values that decode and that an actor hardly expects: collections with repeated ids, and invalid positions.
enum ValueScenarios {
    static func make(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...6)
        return (0..<count).map { _ in
            var steps: [Step] = [.upgrade(version: 3)]
            if dice.chance(30) { steps.append(.say(Envelope.call("observeCells", of: actor(&dice)).text, count: 1)) }
            let more = dice.int(1...8)
            for _ in 0..<more {
                steps.append(.ask(call(&dice).text, milliseconds: 5_000, count: dice.pick([1, 1, 10])))
            }
            return Scenario(steps + [.settle] + ScenarioFragments.ending(&dice))
        }
    }

    private static func actor(_ dice: inout Dice) -> StepText { dice.pick(["victim", "room/1"]) }

    private static func call(_ dice: inout Dice) -> Envelope {
        let actor = actor(&dice)
        return switch dice.int(1...4) {
        case 1, 2: .call("keep(_:at:)", [cells(&dice), place(&dice)], of: actor)
        case 3: .call("adopt(_:)", [cells(&dice)], of: actor)
        default: .call("renumber(_:_:)", [number(&dice), number(&dice)], of: actor)
        }
    }

    /// With so few ids that most exist already.
    private static func cells(_ dice: inout Dice) -> StepText {
        let count = dice.int(0...9)
        let cells = (0..<count).map { _ in #"{"id":\#(number(&dice)),"points":\#(dice.int(0...9))}"# }
        return StepText("[\(cells.joined(separator: ","))]")
    }

    private static func number(_ dice: inout Dice) -> StepText { StepText("\(dice.int(1...6))") }

    private static func place(_ dice: inout Dice) -> StepText {
        dice.pick(["0", "1", "-1", "100", "9223372036854775807", "-9223372036854775808"])
    }
}
