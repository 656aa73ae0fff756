import Bytes
import TrebuchetWire

/// Filters of streams: nothing crashes, what is read is written as the same filter, and what it lets through of a state is JSON.
///
/// An input is a filter, a line break, and a state.
enum FilterFuzz {
    static func run(_ input: [UInt8]) {
        let end = input.firstIndex(of: 0x0A) ?? input.endIndex
        _ = try? input.withUnsafeBytes { try StreamFilter.legacy($0) }
        guard let filter = try? input[..<end].withUnsafeBytes({ try StreamFilter($0) }) else { return }
        var text = ByteBuffer()
        filter.append(to: &text)
        precondition((try? StreamFilter(text.bytes)) == filter, "read again it is another filter")
        let state = Array(input[end...].dropFirst())
        guard JSONText.isValue(state) else { return }
        var evaluation = FilterEvaluation(filter)
        let part = state.withUnsafeBytes { evaluation.take($0) }
        if let part { precondition(JSONText.isValue(part), "the part is no JSON") }
        guard filter.skipsEqual, part != nil else { return }
        precondition(state.withUnsafeBytes { evaluation.take($0) } == nil, "the same value came twice")
    }
}
