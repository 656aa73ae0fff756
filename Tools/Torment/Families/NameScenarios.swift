/// Unusual names of actors and methods.
enum NameScenarios {
    static func make(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...4)
        return (0..<count).map { _ in
            let version = ScenarioFragments.version(&dice)
            var steps: [Step] = []
            let more = dice.int(1...6)
            for _ in 0..<more { steps.append(.say(message(&dice, version), count: dice.pick([1, 1, 1, 5]))) }
            if dice.chance(30) { steps = ScenarioFragments.disturbed(steps, &dice) }
            return Scenario([ScenarioFragments.upgrade(version)] + steps + ScenarioFragments.ending(&dice))
        }
    }

    private static func message(_ dice: inout Dice, _ version: Int) -> StepText {
        let target = dice.chance(70) ? name(&dice, known: "sum(_:_:)") : "sum(_:_:)"
        let actor = dice.chance(40) ? name(&dice, known: "victim") : dice.pick(["victim", "victim", "room/1"])
        switch dice.int(1...8) {
        case 1: return Envelope.resume(target, of: actor).text
        case 2:
            return Envelope.call(target, ["1", "2"], of: actor, version: version).with("session", text: "@").of(
                type: "repeat"
            ).text
        case 3:
            return Envelope.call("sum(_:_:)", ["1", "2"], of: actor, version: version).with(
                "genericSubstitutions", StepText("[\"") + mangled(&dice) + StepText("\"]")
            ).text
        case 4: return Envelope.streamEnd(name(&dice, known: "s1")).text
        default: return Envelope.call(target, ["1", "2"], of: actor, version: version).text
        }
    }

    private static func name(_ dice: inout Dice, known: String) -> StepText {
        switch dice.int(1...10) {
        case 1...4: return mangled(&dice)
        case 5: return StepText("<n*\(dice.edge(upTo: 1_048_576))>")
        case 6:
            return dice.pick(["", "/", "%2A", "room/", "room/%2A", "room//", "honest", "%00", "..", "debug%00"])
        // Written with escapes, or in another normal form.
        case 7: return StepText(known.utf8.map { "%5Cu00" + String($0, radix: 16) }.joined())
        case 8:
            return dice.pick([
                "room/e%CC%81", "room/%C3%A9", "room/%E1%84%80%E1%85%A1", "room/<%CC%81*10000>",
                "room/%5Cud83d%5Cude00",
            ])
        case 9: return StepText(known + dice.pick(["%20", "%5Cn", "%00", "()", "%EF%BB%BF"]))
        default:
            return StepText(
                "<" + dice.pick(["(", ":", "_", "room/", "%5Cu0041", "%F0%9F%98%80"]) + "*\(dice.edge(upTo: 100_000))>")
        }
    }

    /// Texts that resemble mangled Swift names, also deeply nested.
    private static func mangled(_ dice: inout Dice) -> StepText {
        let core = dice.pick(["Si", "SS", "Sa", "yyt", "4mainAAV", "x"])
        let wrapper = dice.pick(["Sg", "Sg", "Sg", "m", "Sg_", "SaySi", "ACy", "z", "Xp"])
        let count = dice.pick([0, 1, 100, 1_000, 10_000, 45_000, 45_000, 100_000, 300_000])
        let type = dice.chance(70) ? "\(core)<\(wrapper)*\(count)>" : "<\(wrapper)*\(count)>\(core)"
        // A method or accessor around the type, or an invalid frame.
        let frame = dice.pick([
            ("$s", "D"), ("$s", ""), ("$s4main1AC3sumyy", "F"), ("$s4main1AC3sumyy", "FTE"), ("$s4main1AV1b", "vp"),
            ("$s4main3sumyyF", ""), ("$s", "5helloyyF"), ("$S4main1AC3sumyy", "F"), ("_$s4main3sumyy", "F"),
            ("_T0", "F"),
            ("$e4main3sumyy", "F"), ("$s12TrebuchetCLI6VictimC3sumyS2i_SitFTE", ""),
        ])
        return StepText(frame.0 + type + frame.1)
    }
}
