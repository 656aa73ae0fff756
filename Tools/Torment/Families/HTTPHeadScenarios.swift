/// Before the upgrade.
enum HTTPHeadScenarios {
    static func make(_ dice: inout Dice) -> [Scenario] {
        let count = dice.int(1...6)
        return (0..<count).map { _ in Scenario(.plain, steps(&dice)) }
    }

    private static func steps(_ dice: inout Dice) -> [Step] {
        let head = StepText(quoting: ScenarioRunner.head(version: dice.pick([1, 3])))
        let bytes = Step.bytes(mutated(head, &dice), count: 1)
        var steps: [Step] = [.hold, bytes]
        // Frames that do not wait for the response.
        if dice.chance(30) { steps.append(.say(Envelope.call("nothing()").text, count: dice.int(1...20))) }
        if dice.chance(20) {
            steps.append(.say(Envelope.call("text(_:)", [StepText("\(dice.size(upTo: 40_000))")]).text, count: 1))
        }
        steps.append(
            dice.pick([
                .send, .send, .cut(dice.int(0...400)), .pieces(dice.int(1...40)),
                .stall(dice.int(0...300), milliseconds: dice.int(1...500)),
            ]))
        return steps + ScenarioFragments.ending(&dice)
    }

    private static func mutated(_ head: StepText, _ dice: inout Dice) -> StepText {
        let source = head.description
        func replacing(_ old: String, _ new: StepText) -> StepText {
            StepText(source.replacing(StepText(quoting: old).description, with: new.description))
        }
        let line = "\r\n\r\n"
        switch dice.int(1...19) {
        case 1: return replacing("GET / ", StepText("<A*\(dice.edge(upTo: 100_000))>%20/%20"))
        case 2: return replacing("GET / ", StepText("GET%20/<a*\(dice.edge(upTo: 100_000))>%20"))
        case 3: return replacing(line, StepText("%0D%0AX:<b*\(dice.edge(upTo: 1_000_000))>%0D%0A%0D%0A"))
        case 4: return replacing(line, StepText("%0D%0A<X:y%0D%0A*\(dice.edge(upTo: 10_000))>%0D%0A"))
        case 5:
            return replacing(
                "Version: 13", StepText(quoting: dice.pick(["Version: 12", "Version: 1333333333333333", "Version:"])))
        case 6:
            return replacing(
                "dGhlIHNhbXBsZSBub25jZQ==", StepText(quoting: dice.pick(["", "a", "dGhlIHNhbXBsZSBub25jZQ", "===="])))
        case 7: return replacing("\r\n", StepText(quoting: dice.pick(["\n", "\r", "\r\r\n", "\r\n "])))
        case 8: return replacing("Host: localhost\r\n", "")
        case 9:
            return replacing(
                "Host: localhost",
                StepText(
                    quoting: dice.pick([
                        "Host: evil.example", "Host: localhost\r\nHost: localhost", "Host: [::1]:99999",
                    ])))
        case 10:
            return replacing(
                line,
                StepText(
                    quoting: "\r\nOrigin: \(dice.pick(["null", "http://evil.example", "http://localhost", "x"]))\(line)"
                ))
        case 11:
            return replacing(
                line,
                StepText(quoting: "\r\nContent-Length: \(dice.pick(["0", "5", "-1", "99999999999999999999"]))\(line)"))
        case 12:
            return replacing(line, StepText(quoting: "\r\nTransfer-Encoding: chunked\(line)5\r\nhello\r\n0\(line)"))
        case 13:
            return replacing(
                line,
                StepText(
                    quoting:
                        "\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=\(dice.int(0...20))\(line)"
                ))
        case 14: return StepText(quoting: "GET /healthz HTTP/1.1\r\nHost: localhost\(line)").repeated(dice.int(1...50))
        case 15: return StepText(quoting: (0..<dice.int(1...300)).map { _ in UInt8(dice.int(0...255)) })
        case 16: return replacing("trebuchet.v3", StepText("<x,*\(dice.edge(upTo: 10_000))>trebuchet.v3"))
        case 17: return StepText("<X*\(dice.edge(upTo: 1_000_000))>")
        case 18:
            let sizes = [
                "0", "1", "1024", "16777216", "-1", "x", "99999999999999999999", "1\r\nTrebuchet-Message-Size: 2",
            ]
            return replacing(line, StepText(quoting: "\r\nTrebuchet-Message-Size: \(dice.pick(sizes))\(line)"))
        default: return head
        }
    }
}
