/// JSON of unusual shapes and sizes.
enum MessageShapeScenarios {
    static func depths(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...4)
        return (0..<count).map { _ in
            let version = ScenarioFragments.version(&dice)
            var steps: [Step] = []
            let more = dice.int(1...5)
            for _ in 0..<more { steps.append(.say(odd(&dice, version), count: 1)) }
            return Scenario(
                [ScenarioFragments.upgrade(version)] + ScenarioFragments.disturbed(steps, &dice)
                    + ScenarioFragments.ending(&dice))
        }
    }

    private static func odd(_ dice: inout Dice, _ version: Int) -> StepText {
        let depth = dice.pick([1, 30, 60, 61, 62, 63, 64, 65, 66, 1_000, 50_000, 400_000])
        let call = Envelope.call("echo(_:)", ["\"x\""], version: version)
        let deep: StepText =
            switch dice.int(1...4) {
            case 1: StepText("<[*\(depth)><]*\(depth)>")
            case 2: StepText("<{\"a\":*\(min(depth, 100_000))>1<}*\(min(depth, 100_000))>")
            case 3: StepText("<[*\(depth)>")
            default: StepText("<[{\"b\":*\(min(depth, 100_000))>null<}]*\(min(depth, 100_000))>")
            }
        switch dice.int(1...9) {
        case 1: return call.with("arguments", StepText("[") + deep + StepText("]")).text
        case 2: return call.with("unknown", deep).text
        case 3:
            return call.with(dice.pick(["callID", "actorID", "filter", "timeoutMilliseconds", "streamFilter"]), deep)
                .text
        case 4:
            let levels = dice.pick([1, 20, 28, 29, 30, 31, 60, 10_000])
            return Envelope.call(
                "depth(_:)", [StepText("<{\"children\":[*\(levels)>{\"children\":[]}<]}*\(levels)>")]
            ).text
        case 5: return call.with("unknown", StepText("{<\"m\":1,*\(dice.edge(upTo: 100_000))>\"n\":2}")).text
        case 6: return StepText("{<\"k#\":1,*\(dice.edge(upTo: 10_000))>\"type\":\"invocation\"}")
        case 7:
            let piece = dice.pick([
                "%5Cn", "%5Cu0000", "%5Cud83d%5Cude00", "%5Cud800", "%5C%22", "%C3%A9", "%5Cx", "%01",
            ])
            return Envelope.call("echo(_:)", [StepText("\"<\(piece)*\(dice.edge(upTo: 100_000))>\"")]).text
        case 8:
            let number = dice.pick(["<1*5000>", "1e<9*100>", "-<0*1000>1", "0.<3*100000>", "1E+<0*2000>5"])
            return Envelope.call("sum(_:_:)", ["1", StepText(number)]).text
        default: return StepText("<%20*\(dice.edge(upTo: 1_000_000))>") + call.text
        }
    }

    static func sizes(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...3)
        return (0..<count).map { _ in
            let version = dice.pick([3, 3, 3, 1])
            var steps: [Step] = []
            let more = dice.int(1...4)
            for _ in 0..<more { steps.append(.say(large(&dice, version), count: dice.pick([1, 1, 2, 4]))) }
            return Scenario(
                [ScenarioFragments.upgrade(version)] + ScenarioFragments.disturbed(steps, &dice)
                    + ScenarioFragments.ending(&dice))
        }
    }

    private static func large(_ dice: inout Dice, _ version: Int) -> StepText {
        let size = dice.edge(upTo: 1_200_000)
        switch dice.int(1...4) {
        case 1: return Envelope.call("echo(_:)", [StepText("\"<z*\(size)>\"")], version: version == 3 ? 3 : 1).text
        case 2: return Envelope.call("text(_:)", [StepText("\(size)")], version: version).text
        case 3: return Envelope.call("nothing()", version: version).with("unknown", text: StepText("<u*\(size)>")).text
        // A message of an exact size.
        default:
            let limit = 1 << 20
            let call = Envelope.call("nothing()", id: "big").text
            return call + StepText("<%20*\(limit - call.bytes(number: 1).count + dice.int(-2...2))>")
        }
    }
}
