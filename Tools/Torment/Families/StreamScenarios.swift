/// Streams: started, resumed, filtered, ended, and not read.
enum StreamScenarios {
    private static let streams: [StepText] = ["observeState", "observeState", "observeLog", "observeTicks"]

    static func make(_ dice: inout Dice) -> [Scenario] {
        switch dice.int(1...10) {
        case 1...2: return [silent(&dice)]
        case 3...4: return [many(&dice)]
        case 5...6: return [right(&dice)]
        default: break
        }
        let count = dice.int(1...5)
        return (0..<count).map { _ in
            let version = ScenarioFragments.version(&dice)
            var steps: [Step] = []
            let more = dice.int(1...10)
            for _ in 0..<more { steps.append(.say(message(&dice, version), count: dice.pick([1, 1, 1, 3]))) }
            return Scenario(
                [ScenarioFragments.upgrade(version)] + ScenarioFragments.disturbed(steps, &dice)
                    + ScenarioFragments.ending(&dice))
        }
    }

    private static func actor(_ dice: inout Dice) -> StepText {
        dice.pick([
            "victim", "victim", "room/1", StepText("room/\(dice.int(1...20))"), "broken/1", "noone", "slow/50/s",
        ])
    }

    private static func message(_ dice: inout Dice, _ version: Int) -> StepText {
        switch dice.int(1...9) {
        case 1...2: return Envelope.call(dice.pick(streams), of: actor(&dice), version: version).text
        case 3: return Envelope.call(dice.pick(streams), version: version).with("filter", filter(&dice)).text
        case 4: return Envelope.resume(dice.pick(streams + ["observeNothing"]), of: actor(&dice)).text
        case 5:
            return Envelope.resume(dice.pick(streams), of: actor(&dice), id: dice.pick(["s1", "s2", "own", "c#"]))
                .with(dice.pick(["epoch", "lastSequence", "filter"]), CallScenarios.value(&dice)).text
        case 6: return Envelope.streamEnd(dice.pick(["s1", "s2", "s3", "own", "none"])).text
        case 7: return Envelope.call(dice.pick(streams), version: 1).with("streamFilter", legacyFilter(&dice)).text
        default:
            return Envelope.call(
                dice.pick(["set(_:)", "churn(_:)", "tick(_:)"]), [StepText("\(dice.int(0...100))")], of: actor(&dice),
                version: version
            ).text
        }
    }

    private static func filter(_ dice: inout Dice) -> StepText {
        let value = CallScenarios.value(&dice)
        let path = dice.pick([
            "/number", "/items/7", "", "/", "/text", "number", "/items/~1", "/items/~2", "/<a/*1000>",
        ])
        return dice.pick([
            "{\"distinct\":true}", "{}", "[]", StepText("{\"path\":\"\(path)\"}"), StepText("{\"distinct\":\(value)}"),
            StepText("{\"minIntervalMilliseconds\":\(value)}"), "{\"minIntervalMilliseconds\":100}",
            "{\"minIntervalMilliseconds\":3600000}",
            StepText(
                "{\"where\":{\"path\":\"\(path)\",\"op\":\"\(dice.pick(["gt", "eq", "exists", "nonEmpty", "x"]))\",\"value\":\(value)}}"
            ),
            StepText("{\"where\":{\"path\":\"/number\",\"op\":\"ge\",\"value\":\(dice.int(0...100))}}"),
            StepText("{\"where\":{\"path\":\"/text\",\"op\":\"eq\",\"value\":\"<w*\(dice.edge(upTo: 10_000))>\"}}"),
        ])
    }

    private static func legacyFilter(_ dice: inout Dice) -> StepText {
        StepText(
            "{\"type\":\"\(dice.pick(["all", "changed", "nonEmpty", "threshold", "field", "custom", ""]))\",\"field\":\"number\",\"value\":\(CallScenarios.value(&dice))}"
        )
    }

    /// Subscribes, changes and does not read.
    private static func silent(_ dice: inout Dice) -> Scenario {
        let room = StepText("room/\(dice.int(1...20))")
        var steps: [Step] = [.receiveBuffer(dice.pick([1_024, 4_096, 65_536])), .upgrade(version: 3)]
        steps.append(.say(Envelope.call(dice.pick(streams), of: room).text, count: dice.int(1...20)))
        steps.append(
            .say(Envelope.call("fill(_:)", [StepText("\(dice.edge(upTo: 262_144))")], of: room).text, count: 1))
        steps.append(
            .say(
                Envelope.call(
                    dice.pick(["set(_:)", "tick(_:)", "churn(_:)"]), [StepText("\(dice.int(1...100))")], of: room
                ).text,
                count: dice.int(1...200)))
        steps.append(.say(Envelope.call("fill(_:)", ["0"], of: room).text, count: 1))
        return Scenario(
            steps + dice.pick([[.leave], [.leave], [.pause(milliseconds: 200), .reset], [.reset], [.read(100)]]))
    }

    /// Streams up to the limit, and beyond.
    private static func many(_ dice: inout Dice) -> Scenario {
        let count = dice.pick([10, 255, 256, 257, 400])
        var steps: [Step] = [.upgrade(version: 3)]
        let resumed = dice.chance(30)
        let room = StepText("room/\(dice.int(1...20))")
        let envelope =
            resumed ? Envelope.resume(dice.pick(streams), of: room) : Envelope.call(dice.pick(streams), of: room)
        steps.append(.say(dice.chance(40) ? envelope.with("filter", filter(&dice)).text : envelope.text, count: count))
        steps.append(.say(Envelope.call("set(_:)", ["#"], of: room).text, count: dice.int(1...20)))
        return Scenario(
            [steps[0]] + ScenarioFragments.disturbed(Array(steps.dropFirst()), &dice) + ScenarioFragments.ending(&dice))
    }

    /// Each started or resumed stream is answered, with a start or an error.
    private static func right(_ dice: inout Dice) -> Scenario {
        var steps: [Step] = [.upgrade(version: 3)]
        let count = dice.int(1...6)
        for _ in 0..<count {
            let envelope =
                dice.chance(50)
                ? Envelope.resume(dice.pick(streams), of: actor(&dice))
                : Envelope.call(dice.pick(streams), of: actor(&dice))
            steps.append(.ask(envelope.text, milliseconds: 1_000, count: dice.int(1...5)))
            steps.append(.ask(Envelope.call("set(_:)", ["#"]).text, milliseconds: 1_000, count: 1))
        }
        return Scenario(steps + [.settle] + ScenarioFragments.ending(&dice))
    }
}
