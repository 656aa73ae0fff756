/// Large amounts of one thing.
enum FloodScenarios {
    static func make(_ dice: inout Dice) -> [Scenario] {
        switch dice.int(1...6) {
        // Connections.
        case 1: return (0..<dice.int(10...80)).map { _ in Scenario([.close]) }
        case 2:
            let ending = ScenarioFragments.ending(&dice)
            return (0..<dice.int(5...30)).map { _ in Scenario([.upgrade(version: 3)] + ending) }
        default: break
        }
        let call = CallScenarios.good(&dice)
        let flood: Step =
            switch dice.int(1...6) {
            case 1: .say(call.text, count: dice.int(100...5_000))
            case 2: .say(Envelope.cancel("c#").text, count: dice.int(100...20_000))
            case 3:
                .say(
                    Envelope.call("later(_:)", [StepText("\(dice.int(0...1_000))")]).text, count: dice.int(900...3_000))
            case 4: .say(Envelope.streamEnd("s#").text, count: dice.int(100...20_000))
            case 5: .bytes(StepText("<%89%84%00%00%00%00ping*\(dice.int(100...5_000))>"), count: 1)
            default: .say(Envelope.call("tick(_:)", ["1000"]).text, count: dice.int(10...100))
            }
        return [Scenario([.upgrade(version: 3), .hold, flood, .send] + ScenarioFragments.ending(&dice))]
    }
}
