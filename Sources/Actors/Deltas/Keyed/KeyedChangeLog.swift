/// The changes of a keyed collection since they were last taken.
///
/// Elements are recorded by id and read when the changes are taken. Each is therefore encoded at most once, however often it was
/// changed. The log holds no copies that would make the next in-place change copy the element.
@usableFromInline
package struct KeyedChangeLog<Element: Identifiable & Sendable>: Sendable where Element.ID: Sendable {
    /// A recorded change.
    @usableFromInline
    enum Step: Sendable {
        case add(id: Element.ID, index: Int)
        /// An added element that was removed later. The steps between rely on its position.
        case addRemoved(Element, index: Int)
        case replace(id: Element.ID, index: Int)
        case remove(index: Int)
        case move(from: Int, to: Int)
        case removeAll
        /// A step that became unnecessary.
        case nothing
    }

    @usableFromInline var steps: [Step] = []
    /// The index of the step that writes an element.
    @usableFromInline var writes: [Element.ID: Int] = [:]
    /// True after too many steps: the whole value must be sent.
    @usableFromInline var isFull = false
    /// True if only updates were recorded, so that elements still have the recorded indices.
    @usableFromInline private(set) var keepsPositions = true
    /// The mark of the version before the first step.
    @usableFromInline let start = ChangeStamp()

    @usableFromInline
    init() {}

    @inlinable
    mutating func updated(_ id: Element.ID, index: Int, count: Int) {
        guard !isFull else { return }
        let number = steps.count
        // A single hash lookup, which is most of the cost of recording.
        guard Self.read(&writes[id, default: number]) == number else { return }
        append(.replace(id: id, index: index), count)
    }

    @inlinable
    static func read(_ position: inout Int) -> Int { position }

    @usableFromInline
    mutating func added(_ id: Element.ID, index: Int, count: Int) {
        keepsPositions = false
        write(id, .add(id: id, index: index), count)
    }

    @usableFromInline
    mutating func removed(_ element: Element, index: Int, count: Int) {
        guard !isFull else { return }
        keepsPositions = false
        if let number = writes.removeValue(forKey: element.id) {
            switch steps[number] {
            case .add where number == steps.count - 1:
                steps.removeLast()
                return
            case .add(_, let index): steps[number] = .addRemoved(element, index: index)
            default: steps[number] = .nothing
            }
        }
        append(.remove(index: index), count)
    }

    @usableFromInline
    mutating func moved(from: Int, to: Int, count: Int) {
        guard !isFull else { return }
        keepsPositions = false
        if case .move(let first, let last)? = steps.last, last == from {
            steps[steps.count - 1] = first == to ? .nothing : .move(from: first, to: to)
        } else {
            append(.move(from: from, to: to), count)
        }
    }

    @usableFromInline
    mutating func removedAll() {
        steps = [.removeAll]
        writes = [:]
        isFull = false
        keepsPositions = false
    }

    /// Discards the steps, so that the whole value is sent.
    @usableFromInline
    mutating func discard() {
        steps = []
        writes = [:]
        isFull = true
    }

    @inlinable
    mutating func write(_ id: Element.ID, _ step: Step, _ count: Int) {
        guard !isFull else { return }
        writes[id] = steps.count
        append(step, count)
    }

    /// Appends a step. With steps for more than a quarter of the elements, the whole value is hardly longer.
    @inlinable
    mutating func append(_ step: Step, _ count: Int) {
        guard steps.count < max(64, count / 4) else {
            discard()
            return
        }
        steps.append(step)
    }
}
