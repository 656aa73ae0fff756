/// Frames that violate the rules of RFC 6455, or just follow them.
enum FrameScenarios {
    static func make(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...6)
        return (0..<count).map { _ in
            var frames: [Step] = []
            // Sometimes with in-flight calls and streams.
            if dice.chance(30) {
                frames.append(.say(Envelope.call("later(_:)", ["200"]).text, count: dice.int(1...30)))
            }
            if dice.chance(30) { frames.append(.say(Envelope.call("observeState").text, count: 1)) }
            let more = dice.int(1...4)
            for _ in 0..<more { frames += frame(&dice) }
            let version = ScenarioFragments.version(&dice)
            return Scenario(
                [ScenarioFragments.upgrade(version)] + ScenarioFragments.disturbed(frames, &dice)
                    + ScenarioFragments.ending(&dice))
        }
    }

    private static func frame(_ dice: inout Dice) -> [Step] {
        let call = Envelope.call("sum(_:_:)", ["1", "2"]).text
        switch dice.int(1...12) {
        case 1: return [.frame(first: dice.int(0...255), isMasked: dice.chance(80), claimed: nil, call)]
        case 2: return [.frame(first: 0x81, isMasked: false, claimed: nil, call)]
        case 3:
            let claimed = dice.pick([0, 125, 126, 127, 65_535, 65_536, 1 << 20, 1 << 20 + 1, 1 << 31, 1 << 62, -1])
            return [.frame(first: dice.pick([0x81, 0x82, 0x01, 0x89]), isMasked: true, claimed: claimed, call)]
        case 4:
            return [
                .frame(
                    first: dice.pick([0x89, 0x8A, 0x88]), isMasked: true, claimed: nil,
                    StepText("<p*\(dice.edge(upTo: 300))>"))
            ]
        case 5:
            return [
                .frame(
                    first: 0x88, isMasked: true, claimed: nil,
                    StepText("%0\(dice.int(0...9))%\(dice.int(10...99))<r*\(dice.int(0...123))>"))
            ]
        case 6: return [.frame(first: dice.pick([0x80, 0x00]), isMasked: true, claimed: nil, call)]
        case 7: return [.split(dice.int(1...40), call)]
        case 8: return [.split(1, StepText("<%20*\(dice.pick([1_000, 1_023, 1_024, 1_025, 3_000]))>"))]
        case 9:
            return [
                .frame(
                    first: 0x81, isMasked: true, claimed: nil,
                    StepText("%\(dice.pick(["C0", "FF", "ED%A0%80", "F5", "80", "E2%82"]))"))
            ]
        case 10:
            // A ping between the fragments of a message.
            return [
                .frame(first: 0x01, isMasked: true, claimed: nil, "{"),
                .frame(first: 0x89, isMasked: true, claimed: nil, "x"),
                .frame(first: dice.pick([0x80, 0x81]), isMasked: true, claimed: nil, "}"),
            ]
        case 11: return Array(repeating: .frame(first: 0, isMasked: true, claimed: nil, ""), count: dice.int(1...30))
        default:
            // No frame may follow the close frame.
            return [
                .frame(first: 0x88, isMasked: true, claimed: nil, "%03%E8"), .say(call, count: dice.int(1...40)),
                .frame(first: 0x88, isMasked: true, claimed: nil, "%03%E8"),
            ]
        }
    }
}
