import Bytes
import Foundation
import Platform
import TrebuchetWire

/// What it takes to write and read a struct of some 200 bytes, with the coder of messages and with Foundation's.
struct CodecLoad {
    let rounds: Int

    private struct Order: Codable, Equatable {
        struct Line: Codable, Equatable {
            var sku: String
            var quantity: Int
            var price: Double
        }
        var id: UUID
        var customer: String
        var placed: Date
        var lines: [Line]
        var note: String?
        var express: Bool
    }

    private let order = Order(
        id: UUID(uuidString: "0B5E9F4C-7C1B-4E0B-9C55-0D6E1F6A2B3C")!, customer: "Ada Lovelace",
        placed: Date(timeIntervalSince1970: 1_767_225_600.25),
        lines: [
            .init(sku: "WIDGET-10", quantity: 3, price: 19.99), .init(sku: "GADGET-7", quantity: 12, price: 4.5),
        ], note: nil, express: true)

    func run() throws -> BenchReport {
        let coder = ValueCoder()
        let (encoder, decoder) = Self.foundation()
        var buffer = ByteBuffer()
        try coder.encode(order, into: &buffer)
        let text = Array(buffer.bytes)
        let data = Data(text)
        guard try coder.decode(Order.self, from: buffer.bytes) == order,
            try decoder.decode(Order.self, from: data) == order
        else { throw ValueError("an order is not what it was when it is read") }
        // By turns, so that a neighbour slows all of them.
        var (ours, theirs, oursRead, theirsRead) = ([Double](), [Double](), [Double](), [Double]())
        for _ in 0..<5 {
            ours.append(
                try nanoseconds {
                    buffer.removeAll()
                    try coder.encode(order, into: &buffer)
                })
            theirs.append(try nanoseconds { _ = try encoder.encode(order) })
            oursRead.append(try nanoseconds { _ = try text.withUnsafeBytes { try coder.decode(Order.self, from: $0) } })
            theirsRead.append(try nanoseconds { _ = try decoder.decode(Order.self, from: data) })
        }
        var report = BenchReport()
        report.add("bytes", text.count)
        report.add("encode_ns", ours.median)
        report.add("foundation_encode_ns", theirs.median)
        report.add("decode_ns", oursRead.median)
        report.add("foundation_decode_ns", theirsRead.median)
        return report
    }

    private func nanoseconds(_ work: () throws -> Void) rethrows -> Double {
        let start = MonotonicClock.now
        for _ in 0..<rounds { try work() }
        return Double(MonotonicClock.now - start) / Double(rounds)
    }

    /// With dates as messages have them.
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
