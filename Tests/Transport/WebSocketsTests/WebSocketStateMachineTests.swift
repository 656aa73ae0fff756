import Testing

@testable import WebSockets

@Suite("WebSocketStateMachine (RFC 6455 §5.5, §7)")
struct WebSocketStateMachineTests {
    typealias Machine = WebSocketStateMachine

    enum Event {
        case message, ping, pong
        case peerClose([UInt8])
        case violation(ProtocolViolation)
        case close(UInt16)
        case timeout, lost
    }

    static func ending(
        _ code: UInt16, _ reason: String = "", reply: UInt16? = nil, replyReason: String = "",
        _ transport: Machine.Ending.Transport
    ) -> Machine.Action {
        let reply = reply.map { ClosePayload(code: WebSocketCloseCode(rawValue: $0), reason: replyReason) }
        return .finish(
            Machine.Ending(
                code: WebSocketCloseCode(rawValue: code), reason: reason, reply: reply, transport: transport))
    }

    static func sent(_ code: UInt16) -> Machine.Action {
        .sendClose(ClosePayload(code: WebSocketCloseCode(rawValue: code)))
    }

    private func run(_ event: Event, on machine: inout Machine) -> Machine.Action {
        switch event {
        case .message: machine.received(message: .text)
        case .ping: machine.received(control: .ping, UnsafeRawBufferPointer(start: nil, count: 0))
        case .pong: machine.received(control: .pong, UnsafeRawBufferPointer(start: nil, count: 0))
        case .peerClose(let payload): payload.withUnsafeBytes { machine.received(control: .close, $0) }
        case .violation(let violation): machine.received(violation)
        case .close(let code): machine.close(ClosePayload(code: WebSocketCloseCode(rawValue: code)))
        case .timeout: machine.closeTimedOut()
        case .lost: machine.abort("lost")
        }
    }

    private static let bye: [UInt8] = [0x03, 0xE9, 0x62, 0x79, 0x65]  // 1001 "bye"
    private static let utf8 = ProtocolViolation.invalidUTF8

    /// The events, the resulting actions, and the phase after each.
    static let server: [(String, [(Event, Machine.Action, Machine.Phase)])] = [
        (
            "open: messages are delivered and pings answered",
            [(.message, .deliver, .open), (.ping, .sendPong, .open), (.pong, .nothing, .open)]
        ),
        (
            "the peer closes: its code is echoed and the server ends the connection",
            [
                (.peerClose(bye), ending(1001, "bye", reply: 1001, .end), .closed), (.message, .nothing, .closed),
                (.ping, .nothing, .closed), (.peerClose(bye), .nothing, .closed), (.close(1000), .nothing, .closed),
                (.lost, .nothing, .closed), (.violation(utf8), .nothing, .closed),
            ]
        ),
        (
            "the peer closes without a code: 1005 is reported and an empty frame sent",
            [(.peerClose([]), ending(1005, reply: 1005, .end), .closed)]
        ),
        (
            "we close: messages and pings are thrown away until the peer's close frame",
            [
                (.close(1000), sent(1000), .closing), (.message, .nothing, .closing), (.ping, .nothing, .closing),
                (.close(1001), .nothing, .closing), (.peerClose(bye), ending(1001, "bye", .end), .closed),
            ]
        ),
        (
            "the peer never answers our close frame",
            [
                (.close(4000), sent(4000), .closing),
                (.timeout, ending(1006, "no close frame was received in time", .drop), .closed),
                (.timeout, .nothing, .closed),
            ]
        ),
        ("the connection is lost", [(.lost, ending(1006, "lost", .drop), .closed)]),
        (
            "the connection is lost while closing",
            [(.close(1000), sent(1000), .closing), (.lost, ending(1006, "lost", .drop), .closed)]
        ),
        (
            "a violation fails the connection with its code",
            [(.violation(utf8), ending(1007, utf8.reason, reply: 1007, replyReason: utf8.reason, .end), .closed)]
        ),
        (
            "a violation while closing sends no second close frame",
            [(.close(1000), sent(1000), .closing), (.violation(utf8), ending(1007, utf8.reason, .end), .closed)]
        ),
    ]

    @Test("a server follows the RFC", arguments: server)
    func serverTable(_ name: String, _ steps: [(Event, Machine.Action, Machine.Phase)]) {
        var machine = Machine(role: .server)
        for (event, action, phase) in steps {
            #expect(run(event, on: &machine) == action, "\(name): \(event)")
            #expect(machine.phase == phase, "\(name): \(event)")
        }
    }

    @Test("a client waits for the server to end the connection")
    func client() {
        var machine = Machine(role: .client)
        #expect(run(.peerClose(Self.bye), on: &machine) == Self.ending(1001, "bye", reply: 1001, .awaitPeer))
        machine = Machine(role: .client)
        #expect(run(.close(1000), on: &machine) == Self.sent(1000))
        #expect(run(.peerClose([0x03, 0xE8]), on: &machine) == Self.ending(1000, "", .awaitPeer))
    }

    @Test(
        "an invalid close frame fails the connection",
        arguments: [
            ([0x03], ProtocolViolation.closePayload), ([0x03, 0xEC], .closeCode), ([0x03, 0xED], .closeCode),
            ([0x03, 0xEE], .closeCode), ([0x03, 0xE7], .closeCode), ([0x03, 0xF7], .closeCode),
            ([0x0B, 0xB7], .closeCode),
            ([0x13, 0x88], .closeCode), ([0x00, 0x00], .closeCode), ([0x03, 0xE8, 0xFF], .invalidUTF8),
            ([0x03, 0xE8, 0xC3], .invalidUTF8),
        ] as [([UInt8], ProtocolViolation)])
    func badClose(_ payload: [UInt8], _ violation: ProtocolViolation) {
        var machine = Machine(role: .server)
        let code = violation.code.rawValue
        #expect(
            run(.peerClose(payload), on: &machine)
                == Self.ending(code, violation.reason, reply: code, replyReason: violation.reason, .end))
    }

    @Test("every internal reason fits a close frame, and a long one is truncated between characters")
    func payloads() {
        for violation in ProtocolViolation.allCases {
            #expect(ClosePayload(code: violation.code, reason: violation.reason).encoded.count <= 125)
            #expect(violation.reason.utf8.count <= ClosePayload.maximumReason)
        }
        let long = ClosePayload(code: .normal, reason: String(repeating: "é", count: 100)).encoded
        #expect(long.count == 124)
        #expect(String(validating: long.dropFirst(2), as: UTF8.self) != nil)
        #expect(ClosePayload(code: .noStatus, reason: "never sent").encoded == [])
        #expect(ClosePayload(code: .abnormal).encoded == [])
    }
}
