import Bytes
import TrebuchetWire

/// Stream filters: they never crash, survive a round trip, and their result for a state is JSON.
///
/// An input is a filter, a line break, and a state.
enum FilterFuzz {
    static func run(_ input: [UInt8]) {
        let end = input.firstIndex(of: 0x0A) ?? input.endIndex
        _ = try? input.withUnsafeBytes { try StreamFilter.legacy($0) }
        guard let filter = try? input[..<end].withUnsafeBytes({ try StreamFilter($0) }) else { return }
        var text = ByteBuffer()
        filter.append(to: &text)
        precondition((try? StreamFilter(text.bytes)) == filter, "a round trip changes the filter")
        let state = Array(input[end...].dropFirst())
        guard JSONText.isValue(state) else { return }
        var evaluation = FilterEvaluation(filter)
        state.withUnsafeBytes { state in
            var parts = FilterOperands()
            parts.find(PointerSet(FilterEvaluation.pointers(of: filter)), in: state)
            guard evaluation.take(state, &parts) == .counts else { return }
            if let part = parts.part(evaluation.pointer, of: state) {
                precondition(JSONText.isValue(Array(part)), "the part is not valid JSON")
            }
            var again = FilterOperands()
            let outcome = evaluation.take(state, &again)
            precondition(outcome == (filter.skipsEqual ? .same : .counts), "an equal value was sent twice")
        }
    }
}
