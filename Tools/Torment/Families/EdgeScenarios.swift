/// Output that exactly fills a buffer of the server at the moment when the connection ends.
enum EdgeScenarios {
    /// Repeats one scenario, each time with a little less output.
    static func make(_ dice: inout Dice) -> [Scenario] {
        let edge = dice.pick([16, 64, 128, 128, 128, 256, 256, 1_024]) << 10
        let replies = dice.int(1...6)
        let step = dice.pick([16, 24, 30])
        let range = dice.pick([1_024, 2_400, 2_400])
        let faultySteps = faultySteps(&dice)
        let ending: [Step] = dice.pick([[.reset], [.reset], [.reset], [.finish], [.leave], [.close]])
        let first = dice.int(0...step)
        // Earlier work for the server, so that the end of the connection has arrived when the buffer is full.
        let before: [Step] =
            dice.chance(60)
            ? [.say(Envelope.call("churn(_:)", ["1000"]).text, count: dice.pick([1, 2, 5, 20]))] : []
        return stride(from: first, to: range, by: step).map { missing in
            // A response has about 60 bytes around a text.
            let size = max(0, (edge - missing) / replies - 60)
            let rest = max(0, (edge - missing) - (size + 60) * (replies - 1) - 60)
            let calls: [Step] =
                [.say(Envelope.call("text(_:)", [StepText("\(size)")]).text, count: replies - 1)]
                + [.say(Envelope.call("text(_:)", [StepText("\(rest)")]).text, count: 1)]
            return Scenario([.upgrade(version: 3), .hold] + before + calls + faultySteps + [.send] + ending)
        }
    }

    /// Steps that make the server close the connection, or send other output.
    private static func faultySteps(_ dice: inout Dice) -> [Step] {
        switch dice.int(1...8) {
        case 1...3: [.say("{", count: dice.pick([10, 10, 10, 9, 11, 30]))]
        case 4: [.frame(first: 0x88, isMasked: true, claimed: nil, "%03%E8")]
        case 5: [.frame(first: 0x81, isMasked: false, claimed: nil, "{}")]
        case 6: [.frame(first: 0x81, isMasked: true, claimed: 1 << 30, "")]
        case 7: [.frame(first: 0x89, isMasked: true, claimed: nil, "<p*125>")]
        default:
            [
                .say(Envelope.call("observeState").text, count: dice.int(1...4)),
                .say(Envelope.call("set(_:)", ["#"]).text, count: 3),
            ]
        }
    }
}
