/// Calls of `@Idempotent` methods, and fake repeats.
enum RepeatedCallScenarios {
    static func make(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...4)
        return (0..<count).map { _ in
            var steps: [Step] = []
            let isRight = dice.chance(40)
            let more = dice.int(1...8)
            for _ in 0..<more {
                let call =
                    dice.chance(60)
                    ? Envelope.call("put(_:)", [StepText("\(dice.int(1...9))")], of: actor(&dice), id: "#")
                    : Envelope.call(
                        "putLater(_:milliseconds:)", ["1", StepText("\(dice.int(0...700))")], of: actor(&dice), id: "#")
                let count = dice.pick([1, 1, 10, 100, 500])
                if isRight {
                    steps.append(.ask(call.with("session", text: "@").text, milliseconds: 3_000, count: count))
                } else {
                    steps.append(.say(wrong(call, &dice), count: count))
                }
            }
            if isRight { steps.append(.settle) } else { steps = ScenarioFragments.disturbed(steps, &dice) }
            return Scenario([.upgrade(version: 3)] + steps + ScenarioFragments.ending(&dice))
        }
    }

    private static func actor(_ dice: inout Dice) -> StepText { dice.pick(["victim", "room/1", "room/2"]) }

    private static func wrong(_ call: Envelope, _ dice: inout Dice) -> StepText {
        let session: StepText = dice.pick([
            "@", "@", "@x", "", "a.b", "3k.a1.9x", "<s*64>", "<s*65>", "0.0.0", "@.@", "%C3%A9",
        ])
        let id: StepText = dice.pick([
            "#", "1", "2", "0", "-1", "18446744073709551615", "99999999999999999999", "x1", "01",
        ])
        return call.with("session", text: session).with("callID", text: id)
            .of(type: dice.pick(["invocation", "repeat", "repeat"])).text
    }
}
