import Glibc
import Platform

/// Executes a scenario on the calling thread.
final class ScenarioRunner {
    /// A server's wrong behavior towards a correct client.
    struct Complaint: Sendable {
        let text: String
    }

    /// A pending response: its deadline, and its error code if it must be an error.
    private struct ExpectedAnswer {
        let deadline: UInt64
        let code: String?
    }

    private let scenario: Scenario
    private let port: Int
    private let patience: Duration
    private var socket: HostileSocket?
    private var frames = ServerFrames()
    private var session: [UInt8] = []
    private var gathered: [UInt8] = []
    private var isHolding = false
    private var isEnded = false
    /// True if the server has accepted nothing for the maximum wait.
    private var isStuck = false
    private var number = 0
    /// By callID.
    private var expected: [[UInt8]: ExpectedAnswer] = [:]
    /// A response that is not one of the valid ones.
    private var wrongAnswer: String?
    private var asked = 0
    /// The time of the last input: a server that answers all calls in turn may send the last responses late.
    private var lastProgress: UInt64 = 0
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)

    /// - Parameter patience: the time that a response may take beyond its call's limit: the machine may be busy.
    init(_ scenario: Scenario, port: Int, patience: Duration) {
        self.scenario = scenario
        self.port = port
        self.patience = patience
    }

    deinit { buffer.deallocate() }

    /// Runs to the end.
    ///
    /// - Returns: the complaint, if any, and the connection, when the scenario keeps it open.
    func run() -> (complaint: Complaint?, openSocket: HostileSocket?) {
        let size = scenario.steps.lazy.compactMap { if case .receiveBuffer(let size) = $0 { size } else { nil } }.first
        socket = HostileSocket(port: port, receiveBuffer: size, isSecure: scenario.line == .tls)
        guard socket != nil else { return (nil, nil) }
        defer { socket?.close() }
        for step in scenario.steps {
            switch step {
            case .leave:
                defer { socket = nil }
                return (nil, socket)
            case .settle:
                if let complaint = settle() { return (complaint, nil) }
            default: take(step)
            }
        }
        return (nil, nil)
    }

    private func take(_ step: Step) {
        switch step {
        case .receiveBuffer, .settle, .leave: break
        case .upgrade(let version): upgrade(version)
        case .bytes(let text, let count): repeating(count) { write(text.bytes(number: number, session: session)) }
        case .say(let text, let count): repeating(count) { write(FrameBytes.frame(content(text))) }
        case .binary(let text, let count): repeating(count) { write(FrameBytes.frame(first: 0x82, content(text))) }
        case .ask(let text, let limit, let code, let count): ask(text, limit, code, count)
        case .frame(let first, let isMasked, let claimed, let text):
            repeating(1) {
                write(FrameBytes.frame(first: UInt8(first & 0xFF), content(text), isMasked: isMasked, claimed: claimed))
            }
        case .split(let size, let text): repeating(1) { write(FrameBytes.fragments(of: content(text), size: size)) }
        case .hold: isHolding = true
        case .send:
            isHolding = false
            transmit(takeGathered()[...])
        case .cut(let count):
            isHolding = false
            transmit(takeGathered().prefix(count))
        case .pieces(let size):
            isHolding = false
            var rest = takeGathered()[...]
            // After that many the server's behavior is known, and the rest is sent at once.
            for _ in 0..<2_000 where !rest.isEmpty && !isEnded {
                transmit(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
            transmit(rest)
        case .stall(let count, let milliseconds):
            isHolding = false
            let all = takeGathered()
            transmit(all.prefix(count))
            sleep(milliseconds)
            transmit(all.dropFirst(count))
        case .read(let count): for _ in 0..<count where !receive(within: 2_000) { break }
        case .listen(let milliseconds):
            let end = MonotonicClock.now + UInt64(milliseconds) * 1_000_000
            while !isEnded, let left = Self.milliseconds(until: end) {
                fill(within: left); while frames.next() != nil {}
            }
        case .pause(let milliseconds): sleep(milliseconds)
        case .newKeys(let count): for _ in 0..<count where !isEnded { socket?.requestNewKeys() }
        case .reset: socket?.reset()
        case .close: socket?.close()
        case .finish:
            socket?.endWriting()
            readToEnd()
        case .bye(let code):
            transmit(FrameBytes.frame(first: 0x88, [UInt8(code >> 8 & 0xFF), UInt8(code & 0xFF)])[...])
            readToEnd()
        }
    }

    // MARK: Writing

    private func repeating(_ count: Int, _ body: () -> Void) {
        for _ in 0..<count where !isEnded {
            number += 1
            body()
        }
    }

    private func content(_ text: StepText) -> [UInt8] { text.bytes(number: number, session: session) }

    private func write(_ bytes: [UInt8]) {
        if isHolding { gathered += bytes } else { transmit(bytes[...]) }
    }

    private func takeGathered() -> [UInt8] {
        defer { gathered = [] }
        return gathered
    }

    /// Output that the server does not accept is dropped after a while, unless responses are pending: then these are read meanwhile.
    private func transmit(_ bytes: ArraySlice<UInt8>) {
        guard let socket, socket.descriptor >= 0 else { return }
        // Otherwise each of thousands of messages would wait as long.
        if isStuck, !socket.wait(for: POLLOUT, milliseconds: 0) { return }
        isStuck = false
        var rest = bytes
        var waits = 0
        while !rest.isEmpty, !isEnded {
            switch socket.write(rest) {
            case .bytes(let count):
                rest = rest.dropFirst(count)
                waits = 0
            case .ended: isEnded = true
            case .wouldBlock:
                guard !socket.wait(for: POLLOUT, milliseconds: 100) else { continue }
                waits += 1
                if expected.isEmpty {
                    if waits > 5 {
                        isStuck = true
                        return
                    }
                } else {
                    // As far ahead of the responses as possible.
                    while !isEnded, fill(within: 0) { collect() }
                    if waits > 200 {
                        isStuck = true
                        return
                    }
                }
            }
        }
    }

    private func sleep(_ milliseconds: Int) { usleep(UInt32(clamping: milliseconds * 1_000)) }

    // MARK: Reading

    /// Reads the input that has arrived, or arrives within the given milliseconds; false without input.
    @discardableResult
    private func fill(within milliseconds: Int32) -> Bool {
        guard let socket, socket.descriptor >= 0 else {
            isEnded = true
            return false
        }
        guard socket.wait(for: POLLIN, milliseconds: milliseconds) else { return false }
        switch socket.read(into: buffer) {
        case .bytes(let count):
            frames.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            lastProgress = MonotonicClock.now
            return true
        case .wouldBlock: return false
        case .ended:
            isEnded = true
            return false
        }
    }

    private func receive(within milliseconds: Int32) -> Bool {
        let end = MonotonicClock.now + UInt64(milliseconds) * 1_000_000
        while true {
            if let message = frames.next() {
                note(message)
                return true
            }
            guard !isEnded, let left = Self.milliseconds(until: end) else { return false }
            fill(within: left)
        }
    }

    private func readToEnd() {
        let end = MonotonicClock.now + 1_500_000_000
        while !isEnded, let left = Self.milliseconds(until: end) {
            fill(within: left)
            collect()
        }
    }

    private func collect() { while let message = frames.next() { note(message) } }

    private static func milliseconds(until end: UInt64) -> Int32? {
        let now = MonotonicClock.now
        return now < end ? Int32(clamping: (end - now) / 1_000_000 + 1) : nil
    }

    // MARK: The upgrade

    static func head(version: Int) -> String {
        "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            + (version == 3 ? "Sec-WebSocket-Protocol: trebuchet.v3\r\n" : "") + "\r\n"
    }

    private func upgrade(_ version: Int) {
        transmit(Array(Self.head(version: version).utf8)[...])
        let end = MonotonicClock.now + 5_000_000_000
        while !isEnded, let left = Self.milliseconds(until: end) {
            fill(within: left)
            guard let head = frames.takeHead() else { continue }
            for line in String(decoding: head, as: UTF8.self).split(separator: "\r\n") {
                let parts = line.split(separator: ":", maxSplits: 1)
                if parts.count == 2, parts[0].lowercased() == "trebuchet-session" {
                    session = Array(parts[1].utf8).filter { $0 != 0x20 }
                }
            }
            return
        }
    }

    // MARK: Probes

    private func ask(_ text: StepText, _ limit: Int, _ code: String?, _ count: Int) {
        repeating(count) {
            let message = content(text)
            if let name = Self.callID(of: message[...]) {
                let limit = Duration.milliseconds(limit) + patience
                let deadline = MonotonicClock.now + UInt64(limit / .nanoseconds(1))
                expected[name] = ExpectedAnswer(deadline: deadline, code: code)
                asked += 1
            }
            write(FrameBytes.frame(message))
        }
    }

    private func note(_ message: [UInt8]) {
        guard !expected.isEmpty, let name = Self.callID(of: message[...]) else { return }
        guard let answer = expected.removeValue(forKey: name), let code = answer.code else { return }
        let text = String(decoding: message, as: UTF8.self)
        // Too many calls may get this error instead.
        if !text.contains("\"code\":\"\(code)\""), !text.contains("\"code\":\"rateLimited\"") { wrongAnswer = text }
    }

    /// The callID, or else the streamID, of a message.
    private static func callID(of message: ArraySlice<UInt8>) -> [UInt8]? {
        for key in [callIDKey, streamIDKey] {
            let last = message.startIndex + min(300, message.count) - key.count
            guard last >= message.startIndex else { continue }
            for start in message.startIndex...last where message[start..<start + key.count].elementsEqual(key) {
                return Array(message[(start + key.count)...].prefix { $0 != 0x22 })
            }
        }
        return nil
    }

    private static let callIDKey = Array(#""callID":""#.utf8)
    private static let streamIDKey = Array(#""streamID":""#.utf8)

    private func settle() -> Complaint? {
        while true {
            collect()
            if let wrongAnswer { return Complaint(text: "invalid response: \(wrongAnswer)") }
            guard let latest = expected.min(by: { $0.value.deadline < $1.value.deadline }) else { return nil }
            let name = String(decoding: latest.key, as: UTF8.self)
            if isEnded {
                let end = frames.closing.map { "with \($0)" } ?? "without a close frame"
                return Complaint(
                    text: "the server ended the connection \(end); \(expected.count) of \(asked) responses were pending"
                )
            }
            let silence = lastProgress + UInt64(patience / .nanoseconds(1))
            guard let left = Self.milliseconds(until: max(latest.value.deadline, silence)) else {
                // A delayed reader, for example on a busy machine, finds the responses in its buffer.
                if fill(within: 0) { continue }
                return Complaint(
                    text:
                        "\(expected.count) of \(asked) responses are missing, that of call '\(name)' for \(patience) too long"
                )
            }
            fill(within: left)
        }
    }
}
