import Bytes
import Foundation
import Platform
import TrebuchetWire

/// Measures encoding and decoding of a struct of about 200 bytes, with the message coder and with Foundation's.
struct CodecLoad {
    let rounds: Int

    private static let lines = [("WIDGET-10", 3, 19.99), ("GADGET-7", 12, 4.5)]
    private static let id = UUID(uuidString: "0B5E9F4C-7C1B-4E0B-9C55-0D6E1F6A2B3C")!
    private static let placed = Date(timeIntervalSince1970: 1_767_225_600.25)

    private let order = Order(
        id: id, customer: "Ada Lovelace", placed: placed,
        lines: lines.map { Order.Line(sku: $0.0, quantity: $0.1, price: $0.2) }, note: nil, express: true)
    private let wireOrder = WireOrder(
        id: id, customer: "Ada Lovelace", placed: placed,
        lines: lines.map { WireOrder.Line(sku: $0.0, quantity: $0.1, price: $0.2) }, note: nil, express: true)

    func run() throws -> BenchReport {
        let coder = ValueCoder()
        let (encoder, decoder) = Self.foundation()
        var buffer = ByteBuffer()
        try coder.encode(order, into: &buffer)
        let text = Array(buffer.bytes)
        let data = Data(text)
        guard try coder.decode(Order.self, from: buffer.bytes) == order,
            try decoder.decode(Order.self, from: data) == order,
            try coder.decode(wire: WireOrder.self, from: buffer.bytes) == wireOrder
        else { throw ValueError("a decoded order differs from the encoded one") }
        // Alternate, so that other load affects all of them.
        var measurements: [(name: String, times: [Double])] = [
            ("encode_ns", []), ("wire_encode_ns", []), ("foundation_encode_ns", []), ("decode_ns", []),
            ("wire_decode_ns", []), ("foundation_decode_ns", []),
        ]
        for _ in 0..<5 {
            let times = [
                try nanoseconds {
                    buffer.removeAll()
                    try coder.encode(order, into: &buffer)
                },
                try nanoseconds {
                    buffer.removeAll()
                    try coder.encode(wire: wireOrder, into: &buffer)
                },
                try nanoseconds { _ = try encoder.encode(order) },
                try nanoseconds { _ = try text.withUnsafeBytes { try coder.decode(Order.self, from: $0) } },
                try nanoseconds { _ = try text.withUnsafeBytes { try coder.decode(wire: WireOrder.self, from: $0) } },
                try nanoseconds { _ = try decoder.decode(Order.self, from: data) },
            ]
            for index in times.indices { measurements[index].times.append(times[index]) }
        }
        var report = BenchReport()
        report.add("bytes", text.count)
        for figure in measurements { report.add(figure.name, figure.times.median) }
        report.add("state_of_1000_mb_per_second", try rate(Array(repeating: order, count: 1_000), coder))
        report.add("wire_state_of_1000_mb_per_second", try rate(Array(repeating: wireOrder, count: 1_000), coder))
        return report
    }

    /// Returns the rate in megabytes per second at which a large state is encoded: the best of five runs.
    private func rate(_ state: some Encodable, _ coder: ValueCoder) throws -> Double {
        var buffer = ByteBuffer()
        let times = try (0..<5).map { _ in
            let start = MonotonicClock.now
            for _ in 0..<max(1, rounds / 1_000) {
                buffer.removeAll()
                try coder.encode(state, into: &buffer)
            }
            return MonotonicClock.seconds(since: start) / Double(max(1, rounds / 1_000))
        }
        return Double(buffer.count) / times.min()! / 1e6
    }

    private func nanoseconds(_ work: () throws -> Void) rethrows -> Double {
        let start = MonotonicClock.now
        for _ in 0..<rounds { try work() }
        return Double(MonotonicClock.now - start) / Double(rounds)
    }

    /// Returns Foundation's coders with the date format of messages.
    private static func foundation() -> (JSONEncoder, JSONDecoder) {
        let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
        encoder.outputFormatting = .withoutEscapingSlashes
        encoder.dateEncodingStrategy = .custom { date, encoder in
            let milliseconds = Int64((date.timeIntervalSince1970 * 1000).rounded())
            var buffer = ByteBuffer(capacity: 32)
            ISO8601.append(seconds: milliseconds / 1000, milliseconds: Int(milliseconds % 1000), to: &buffer)
            var container = encoder.singleValueContainer()
            try container.encode(String(decoding: buffer.bytes, as: UTF8.self))
        }
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            guard let seconds = ISO8601.seconds(try container.decode(String.self)) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "no date")
            }
            return Date(timeIntervalSince1970: seconds)
        }
        return (encoder, decoder)
    }
}
