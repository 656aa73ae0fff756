/// Rooms, collections and sign-in: used correctly, and almost correctly.
enum ServiceScenarios {
    static func make(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...6)
        return (0..<count).map { _ in dice.chance(40) ? right(&dice) : wrong(&dice) }
    }

    private static func room(_ dice: inout Dice) -> StepText { StepText("rooms/chat-\(dice.int(1...4))") }
    private static func collection(_ dice: inout Dice) -> StepText { StepText("collections/c\(dice.int(1...4))") }
    private static func secret(_ dice: inout Dice) -> String { "\"secret-of-client-\(dice.int(10...40))\"" }

    // MARK: Valid use

    /// Each call is answered.
    private static func right(_ dice: inout Dice) -> Scenario {
        var steps: [Step] = [.upgrade(version: 3)]
        func ask(_ call: Envelope, _ count: Int = 1) {
            steps.append(.ask(call.text, milliseconds: 5_000, count: count))
        }
        switch dice.int(1...3) {
        case 1:
            let room = room(&dice)
            ask(.call("join(presence:token:attempt:)", [StepText(presence(&dice)), "null", "null"], of: room))
            if dice.chance(50) { steps.append(.say(Envelope.call("observeRoster", of: room).text, count: 1)) }
            if dice.chance(50) { steps.append(.say(Envelope.call("observeEvents", of: room).text, count: 1)) }
            let count = dice.int(1...5)
            for _ in 0..<count {
                switch dice.int(1...4) {
                case 1: ask(.call("patchPresence(_:)", [StepText(presence(&dice))], of: room), dice.pick([1, 20, 300]))
                case 2: ask(.call("setPresence(_:)", [StepText(presence(&dice))], of: room), dice.pick([1, 20]))
                case 3: ask(.call("publish(topic:payload:)", [#""t""#, "[1,2,#]"], of: room), dice.pick([1, 20, 200]))
                default: ask(.call("history(topic:after:limit:)", ["null", "null", "10"], of: room))
                }
            }
            if dice.chance(50) { ask(.call("leave(token:)", ["null"], of: room)) }
        case 2:
            let (collection, secret) = (collection(&dice), secret(&dice))
            let count = dice.int(1...6)
            for _ in 0..<count {
                let query = query(&dice)
                switch dice.int(1...5) {
                case 1: ask(.call("get(_:)", [query], of: collection), dice.pick([1, 20]))
                case 2: ask(.call("open(_:)", [query], of: collection), dice.pick([1, 5]))
                case 3: ask(.call("close(_:)", [query], of: collection))
                default:
                    let list = (1...dice.pick([1, 2, 32])).map { _ in mutation(command(&dice)) }.joined(separator: ",")
                    ask(.call("commit(_:from:)", [StepText("[\(list)]"), StepText(secret)], of: collection))
                }
            }
        default:
            ask(.call("signInAsGuest()", of: "auth"), dice.int(1...3))
            ask(.call("sessions()", of: "auth"))
            ask(.call("labelSession(_:)", [#""here""#], of: "auth"))
            ask(.call("endOtherSessions()", of: "auth"))
            ask(.call("sendMagicCode(to:)", [StepText(#""a\#(dice.int(1...20))%40b.c""#)], of: "auth"))
            ask(.call("deleteAccount(code:)", ["null"], of: "auth"))
        }
        return Scenario(steps + [.settle] + ScenarioFragments.ending(&dice))
    }

    /// The number of the message is that of the write.
    private static func mutation(_ command: String) -> String { #"{"number":#,"command":\#(command)}"# }

    private static func presence(_ dice: inout Dice) -> String {
        dice.pick([
            "null", "{}", #"{"x":#}"#, #"{"name":"<n*\#(dice.size(upTo: 3_000))>"}"#, #"{"a":{"b":{"c":#}}}"#, "[#]",
            #"{"x":null}"#,
        ])
    }

    private static func command(_ dice: inout Dice) -> String {
        let id = dice.int(1...30)
        let text = "<t*\(dice.pick([1, 30, 1_000, 20_000]))>"
        return dice.pick([
            #"{"create":{"id":"\#(id)","fields":{"id":"\#(id)","n":#,"t":"\#(text)"}}}"#,
            #"{"create":{"id":"\#(id)","fields":{"id":"\#(id)","n":\#(id)},"ifAbsent":true,"expiresIn":\#(dice.int(1...3))}}"#,
            #"{"update":{"id":"\#(id)","fields":{"n":#,"t":null}}}"#,
            #"{"update":{"id":"\#(id)","fields":{"tags":["\#(text)"]}}}"#,
            #"{"link":{"id":"\#(id)","field":"tags","target":"\#(dice.int(1...50))"}}"#,
            #"{"unlink":{"id":"\#(id)","field":"tags","target":"\#(dice.int(1...50))"}}"#,
            #"{"increment":{"id":"\#(id)","field":"v","by":\#(dice.int(-5...5))}}"#,
            #"{"merge":{"id":"\#(id)","fields":{"m":{"k\#(dice.int(1...9))":#}}}}"#,
            #"{"delete":{"id":"\#(id)"}}"#,
        ])
    }

    private static func query(_ dice: inout Dice) -> StepText {
        let field = dice.pick(["n", "t", "tags", "m.k1", "$creator", "$createdAt", "id"])
        let comparison = dice.pick([
            "equal", "notEqual", "less", "lessOrEqual", "greater", "greaterOrEqual", "contains", "prefix",
        ])
        let value = dice.pick(["1", "null", "true", #""t""#, "[]", "{}", "-7"])
        let condition = #"{"field":"\#(field)","comparison":"\#(comparison)","value":\#(value)}"#
        let conditions = dice.pick(["", condition, #"{"any":[[\#(condition)],[\#(condition)]]}"#])
        let order = dice.chance(50) ? #"{"field":"\#(field)","isDescending":\#(dice.chance(50))}"# : ""
        let limit = dice.chance(50) ? #","limit":\#(dice.int(0...30))"# : ""
        return StepText(
            #"{"conditions":[\#(conditions)],"order":[\#(order)]\#(limit)\#(dice.chance(20) ? #","counts":true"# : "")}"#
        )
    }

    // MARK: Invalid use

    private static func wrong(_ dice: inout Dice) -> Scenario {
        let version = ScenarioFragments.version(&dice)
        var steps: [Step] = []
        let count = dice.int(1...8)
        for _ in 0..<count {
            let call: Envelope
            switch dice.int(1...8) {
            case 1...4: call = of(&dice, target: roomTargets, actor: room(&dice), version)
            case 5...6: call = of(&dice, target: collectionTargets, actor: collection(&dice), version)
            default: call = of(&dice, target: authTargets, actor: "auth", version)
            }
            let actor: StepText? =
                dice.chance(10)
                ? StepText(
                    dice.pick([
                        "rooms/", "rooms/chat-", "collections/", "collections/.", "collections/a/b", "room-lists/chat",
                        "collection-views/94ea", "rooms/<r*\(dice.edge(upTo: 300))>",
                        "collections/<c*\(dice.edge(upTo: 300))>",
                        "rooms/%C3%A9-#", "collections/e%CC%81",
                    ])) : nil
            let text = actor.map { call.with("actorID", text: $0).text } ?? call.text
            steps.append(.say(text, count: dice.pick([1, 1, 1, 10, 100])))
        }
        return Scenario(
            [ScenarioFragments.upgrade(version)] + ScenarioFragments.disturbed(steps, &dice)
                + ScenarioFragments.ending(&dice))
    }

    private static let roomTargets: [(String, Int)] = [
        ("join(presence:token:attempt:)", 3), ("join(presence:token:attempt:)", 3), ("leave(token:)", 1),
        ("setPresence(_:)", 1),
        ("patchPresence(_:)", 1), ("publish(topic:payload:)", 2), ("history(topic:after:limit:)", 3),
        ("list(after:limit:)", 2),
        ("observeRoster", 0), ("observeEvents", 0),
    ]
    private static let collectionTargets: [(String, Int)] = [
        ("commit(_:from:)", 2), ("commit(_:from:as:)", 3), ("open(_:)", 1), ("get(_:)", 1), ("close(_:)", 1),
        ("observeResult", 0),
    ]
    private static let authTargets: [(String, Int)] = [
        ("signInAsGuest()", 0), ("sendMagicCode(to:)", 1), ("verifyMagicCode(email:code:)", 2), ("refresh(_:)", 1),
        ("signIn(idToken:provider:nonce:)", 3), ("signOut(_:)", 1), ("sessions()", 0), ("endSession(_:)", 1),
        ("endOtherSessions()", 0), ("labelSession(_:)", 1), ("sendAddressCode(to:)", 1), ("changeAddress(to:code:)", 2),
        ("deleteAccount(code:)", 1),
    ]

    private static func of(
        _ dice: inout Dice, target: [(String, Int)], actor: StepText, _ version: Int
    ) -> Envelope {
        let (name, count) = dice.pick(target)
        let arguments = (0..<count).map { _ in argument(&dice) }
        return .call(StepText(name), arguments, of: actor, version: version)
    }

    /// A value for any argument position.
    private static func argument(_ dice: inout Dice) -> StepText {
        if dice.chance(25) { return StepText("[\(mutation(command(&dice)))]") }
        if dice.chance(20) { return query(&dice) }
        if dice.chance(20) { return StepText(secret(&dice)) }
        if dice.chance(20) { return StepText(presence(&dice)) }
        let size = dice.size(upTo: 100_000)
        return StepText(
            dice.pick([
                "null", "0", "-1", "9223372036854775807", "1e400", "-0.0", "true", "{}", "[]", #""""#,
                #""<x*\#(size)>""#, "<[*\(dice.edge(upTo: 300))>", "<[*\(dice.edge(upTo: 60))><]*60>",
                #"[\#(#"{"number":0,"command":{}}"#)]"#, #"[{"number":-1,"command":{"delete":{"id":""}}}]"#,
                #"[{"number":9223372036854775807,"command":{"delete":{"id":"1"}}}]"#,
                #"[{"number":#,"commands":[<{"increment":{"id":"1","field":"v","by":9223372036854775807}},*\#(dice.pick([1, 99, 101]))>{"delete":{"id":"1"}}]}]"#,
                #"{"conditions":[<{"field":"n","comparison":"equal","value":1},*\#(dice.edge(upTo: 200))>{"field":"n","comparison":"in","value":[1]}]}"#,
                #"{"conditions":[],"after":"<A*\#(dice.edge(upTo: 300))>"}"#, #"{"conditions":[],"limit":-1}"#,
                #"{"conditions":[{"field":"a.b.c.d.e.f.g.h.i","comparison":"equal","value":null}]}"#,
                #"{"x":{"y":"<%5Cu0000*\#(dice.edge(upTo: 100))>"}}"#, #""a%40b.c""#, #""a@""#,
            ]))
    }
}
