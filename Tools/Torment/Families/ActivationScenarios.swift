/// On-demand actors whose activation is immediate, slow or failing.
enum ActivationScenarios {
    static func make(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...5)
        return (0..<count).map { _ in dice.chance(50) ? right(&dice) : wrong(&dice) }
    }

    private static func actor(_ dice: inout Dice, slowest: Int) -> StepText {
        let number = dice.int(1...100)
        switch dice.int(1...6) {
        case 1: return StepText("room/\(number)")
        case 2: return StepText("broken/\(number)")
        case 3: return StepText("broken/\(dice.int(1...500))/\(number)")
        default: return StepText("slow/\(dice.size(upTo: slowest))/\(dice.int(1...1_000))")
        }
    }

    /// Each call is answered: with its result, an error, or at its time limit.
    private static func right(_ dice: inout Dice) -> Scenario {
        var steps: [Step] = [.upgrade(version: 3)]
        let count = dice.int(1...5)
        for _ in 0..<count {
            if dice.chance(50) {
                // The call's own limit applies, also while it waits for an actor; this activation takes six seconds, and fails. The name
                // is new.
                let limit = dice.pick([1, 50, 200, 500])
                let name = StepText("broken/6000/\(dice.int(1...1_000_000_000))")
                let call = Envelope.call("sum(_:_:)", ["1", "2"], of: name)
                    .with("timeoutMilliseconds", StepText("\(limit)"))
                steps.append(
                    .ask(call.text, milliseconds: limit, code: "timeout", count: dice.pick([1, 1, 5, 50])))
            } else if dice.chance(50) {
                let stream = Envelope.resume("observeState", of: actor(&dice, slowest: 1_500))
                steps.append(.ask(stream.text, milliseconds: 3_000, count: dice.int(1...3)))
            } else {
                steps.append(
                    .ask(
                        Envelope.call("nothing()", of: actor(&dice, slowest: 1_500)).text, milliseconds: 3_000,
                        count: dice.int(1...20)))
            }
        }
        return Scenario(steps + [.settle] + ScenarioFragments.ending(&dice))
    }

    private static func wrong(_ dice: inout Dice) -> Scenario {
        let version = ScenarioFragments.version(&dice)
        var steps: [Step] = []
        let count = dice.int(1...6)
        for _ in 0..<count {
            let actor = actor(&dice, slowest: dice.pick([100, 1_000, 3_000]))
            let times = dice.pick([1, 1, 10, 100, 1_100])
            switch dice.int(1...7) {
            case 1...2:
                // Bytes that wait with their call.
                let size = dice.pick([10, 1_000, 100_000, 1_000_000])
                steps.append(
                    .say(
                        Envelope.call("echo(_:)", [StepText("\"<h*\(size)>\"")], of: actor, version: version).text,
                        count: min(times, max(1, 16_000_000 / size))))
            case 3:
                steps.append(
                    .say(Envelope.call("observeState", of: actor, version: version).text, count: min(times, 300)))
            case 4: steps.append(.say(Envelope.resume("observeState", of: actor).text, count: min(times, 300)))
            case 5:
                steps.append(
                    .say(
                        Envelope.call("put(_:)", ["1"], of: actor, id: "#").with("session", text: "@").text,
                        count: times))
            case 6: steps.append(.say(Envelope.cancel(StepText("c\(dice.int(1...20))")).text, count: 1))
            // Each with a unique name.
            default:
                steps.append(
                    .say(
                        Envelope.call("nothing()", of: StepText("room/\(dice.int(1...9))-#")).text,
                        count: min(times, 100)))
            }
        }
        return Scenario(
            [ScenarioFragments.upgrade(version)] + ScenarioFragments.disturbed(steps, &dice)
                + ScenarioFragments.ending(&dice))
    }
}
