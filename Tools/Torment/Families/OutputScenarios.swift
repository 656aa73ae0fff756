/// Clients that make a server write to standard output and standard error while these are not read, or cannot be.
enum OutputScenarios {
    static func make(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...6)
        return (0..<count).map { _ in Scenario(dice.pick([.full, .closed]), steps(&dice)) }
    }

    /// Each call is answered, with an error or not.
    private static func steps(_ dice: inout Dice) -> [Step] {
        var steps: [Step] = [.upgrade(version: 3)]
        let count = dice.int(1...8)
        for _ in 0..<count {
            let call: Envelope =
                switch dice.int(1...5) {
                case 1, 2: .call("sendMagicCode(to:)", [StepText(#""a\#(dice.int(1...90))%40b.c""#)], of: "auth")
                case 3: .call("signInAsGuest()", of: "auth")
                case 4: .call("join(presence:token:attempt:)", ["null", "null", "null"], of: "rooms/chat-1")
                default: .call("sum(_:_:)", ["1", "2"])
                }
            steps.append(.ask(call.text, milliseconds: 5_000, count: dice.pick([1, 1, 20])))
        }
        return steps + [.settle] + ScenarioFragments.ending(&dice)
    }
}
