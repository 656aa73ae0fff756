/// Calls, cancellations and similar messages.
enum CallScenarios {
    static func make(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...6)
        return (0..<count).map { _ in dice.chance(40) ? right(&dice) : wrong(&dice) }
    }

    /// A correct client, which gets a response to each call.
    private static func right(_ dice: inout Dice) -> Scenario {
        let version = ScenarioFragments.version(&dice)
        var calls: [Step] = []
        let count = dice.int(1...8)
        for _ in 0..<count {
            let envelope = good(&dice, version)
            if version == 3, dice.chance(10) {
                calls.append(.say(Envelope.hello.text, count: dice.pick([1, 1, 1, 100])))
            }
            calls.append(.ask(envelope.text, milliseconds: 3_000, count: dice.pick([1, 1, 1, 10, 100, 300])))
        }
        if dice.chance(30) {
            calls = [.hold] + calls + [.pieces(dice.pick([1_000, 16_000, 60_000]) + dice.int(0...99))]
        }
        return Scenario([ScenarioFragments.upgrade(version)] + calls + [.settle] + ScenarioFragments.ending(&dice))
    }

    static func good(_ dice: inout Dice, _ version: Int = 3) -> Envelope {
        var envelope: Envelope =
            switch dice.int(1...11) {
            case 1: .call("sum(_:_:)", ["1", StepText("\(dice.int(-1_000_000...1_000_000))")], version: version)
            case 2: .call("echo(_:)", [StepText("\"<y*\(dice.size(upTo: 20_000))>\"")], version: version)
            case 3: .call("text(_:)", [StepText("\(dice.size(upTo: 40_000))")], version: version)
            case 4: .call("fail(_:)", ["\"no\""], version: version)
            case 5: .call("nothing()", version: version)
            case 6: .call("later(_:)", [StepText("\(dice.int(0...300))")], version: version)
            case 7: .call("stubborn(_:)", [StepText("\(dice.int(0...200))")], version: version)
            case 8: .call("set(_:)", [StepText("\(dice.int(0...99))")], version: version)
            case 9: .call("churn(_:)", [StepText("\(dice.edge(upTo: 1_000))")], version: version)
            case 10: .call("tick(_:)", [StepText("\(dice.int(0...40))")], version: version)
            default: .call("nobody()", of: dice.pick(["victim", "noone", "debug"]), version: version)
            }
        if dice.chance(10) {
            envelope = envelope.with("timeoutMilliseconds", StepText("\(dice.pick([1, 10, 100, 5_000]))"))
        }
        if dice.chance(10) { envelope = envelope.with("unknown", "{\"a\":[1,null,true]}") }
        return envelope
    }

    private static func wrong(_ dice: inout Dice) -> Scenario {
        let version = ScenarioFragments.version(&dice)
        var steps: [Step] = []
        let count = dice.int(1...12)
        for _ in 0..<count { steps.append(message(&dice, version)) }
        return Scenario(
            [ScenarioFragments.upgrade(version)] + ScenarioFragments.disturbed(steps, &dice)
                + ScenarioFragments.ending(&dice))
    }

    private static func message(_ dice: inout Dice, _ version: Int) -> Step {
        let times = dice.pick([1, 1, 1, 2, 10, 11, 200])
        // Sometimes of a version that was not negotiated.
        let good = good(&dice, dice.chance(90) ? version : dice.int(1...3))
        let text: StepText
        switch dice.int(1...15) {
        case 1: text = good.text
        case 15: text = Envelope.hello.with(dice.pick(["protocolVersion", "session", "limits"]), value(&dice)).text
        case 2: text = good.without(dice.pick(["callID", "actorID", "targetIdentifier", "arguments"])).text
        case 3:
            text =
                good.with(
                    dice.pick(["callID", "actorID", "targetIdentifier", "arguments", "session", "filter"]), value(&dice)
                ).text
        case 4:
            var twice = good
            twice.members.append(dice.pick(good.members))
            text = twice.text
        case 5: text = good.with("callID", text: StepText("<i*\(dice.pick([0, 1, 63, 64, 65, 1_000]))>")).text
        case 6: text = good.with("callID", text: dice.pick(["same", "%5Cu0041", "%C3%A9", "%00", "a%20b"])).text
        case 7:
            text =
                good.of(
                    type: dice.pick(["response", "streamData", "goAway", "", "Invocation", "invocation%00", "repeat"])
                ).text
        case 8: text = Envelope.cancel(dice.pick(["c1", "c2", "c3", "none", "c#"])).text
        case 9: text = good.with("timeoutMilliseconds", value(&dice)).text
        case 10:
            text =
                good.with("genericSubstitutions", StepText("[<\"Si\",*\(dice.pick([0, 1, 31, 32, 33]))>\"Si\"]")).text
        case 11: text = good.with("arguments", StepText("[<1,*\(dice.pick([0, 1, 30, 31, 32, 100_000]))>1]")).text
        case 12: text = StepText(String(good.text.description.prefix(dice.int(0...100))))
        case 13:
            text = StepText(
                quoting: dice.pick([
                    "", "{", "[]", "null", "{}{}", "\u{FEFF}{}", "{\"type\":\"invocation\"}", "{\"payload\":{}}",
                ]))
        default:
            // A call that continues, and the end of the connection.
            text = Envelope.call("later(_:)", [StepText("\(dice.int(0...3_000))")], version: version).text
        }
        return dice.chance(90) ? .say(text, count: times) : .binary(text, count: times)
    }

    static func value(_ dice: inout Dice) -> StepText {
        dice.pick([
            "null", "true", "0", "-1", "1", "1.5", "1e400", "9223372036854775807", "9223372036854775808", "-0",
            "18446744073709551615", "\"\"", "\"x\"", "[]", "{}", "[[]]", "{\"id\":\"victim\"}", "\"%5Cud800\"", "00",
            "+1",
            StepText("<9*\(dice.edge(upTo: 10_000))>0"), "\"\"\"",
        ])
    }
}
