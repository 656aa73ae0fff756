/// Hostility specific to TLS: an invalid handshake, endless key updates.
enum PipeliningScenarios {
    static func make(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...4)
        return (0..<count).map { _ in
            dice.chance(60) ? Scenario(.bare, bare(&dice)) : Scenario(.tls, secure(&dice))
        }
    }

    /// The start of a handshake record: type, version, length.
    private static func bare(_ dice: inout Dice) -> [Step] {
        let bytes: StepText =
            switch dice.int(1...5) {
            case 1: StepText(quoting: ScenarioRunner.head(version: 3))
            case 2: StepText(quoting: (0..<dice.int(1...300)).map { _ in UInt8(dice.int(0...255)) })
            case 3:
                StepText(
                    "%16%03%01%\(dice.pick(["00", "40", "FF"]))%\(dice.pick(["00", "05", "FF"]))<%01*\(dice.edge(upTo: 70_000))>"
                )
            case 4: StepText("<%15%03%03%00%02%01%00*\(dice.edge(upTo: 10_000))>")
            default: StepText("<%14%03%03%00%01%01*\(dice.edge(upTo: 10_000))>")
            }
        return ScenarioFragments.disturbed([.bytes(bytes, count: 1)], &dice) + ScenarioFragments.ending(&dice)
    }

    private static func secure(_ dice: inout Dice) -> [Step] {
        switch dice.int(1...3) {
        case 1: return ScenarioFragments.ending(&dice)
        case 2: return [.upgrade(version: 3), .newKeys(dice.size(upTo: 2_000))] + ScenarioFragments.ending(&dice)
        default:
            return [
                .upgrade(version: 3),
                .ask(Envelope.call("sum(_:_:)", ["1", "2"]).text, milliseconds: 1_000, count: 10),
                .newKeys(dice.int(1...5)),
                .ask(Envelope.call("sum(_:_:)", ["1", "2"]).text, milliseconds: 1_000, count: 10),
                .settle,
            ] + ScenarioFragments.ending(&dice)
        }
    }
}
