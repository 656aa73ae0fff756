/// What happened to a keyed collection since its changes were taken.
///
/// Elements are noted by their ids and read when the changes are taken: each is written at most once however often it was
/// changed, and the log holds no copy that would make the next change in place copy the element.
@usableFromInline
package struct ChangeLog<Element: Identifiable & Sendable>: Sendable where Element.ID: Sendable {
    @usableFromInline
    enum Step: Sendable {
        case add(id: Element.ID, index: Int)
        /// Was removed later; what comes between counts on its place.
        case addRemoved(Element, index: Int)
        case replace(id: Element.ID, index: Int)
        case remove(index: Int)
        case move(from: Int, to: Int)
        case removeAll
        /// Not needed any more.
        case nothing
    }

    @usableFromInline var steps: [Step] = []
    /// The step that writes an element.
    @usableFromInline var writes: [Element.ID: Int] = [:]
    /// There were too many steps.
    @usableFromInline var isFull = false
    /// Whether elements stand where they stood when the steps were noted: nothing but updates came.
    @usableFromInline private(set) var keepsPlaces = true
    /// The version that the steps begin with.
    @usableFromInline let start = ChangeMark()

    @usableFromInline
    init() {}

    @inlinable
    mutating func updated(_ id: Element.ID, index: Int, count: Int) {
        guard !isFull else { return }
        let number = steps.count
        // One look into the table, which is most of what noting costs.
        guard Self.read(&writes[id, default: number]) == number else { return }
        append(.replace(id: id, index: index), count)
    }

    @inlinable
    static func read(_ place: inout Int) -> Int { place }

    @usableFromInline
    mutating func added(_ id: Element.ID, index: Int, count: Int) {
        keepsPlaces = false
        write(id, .add(id: id, index: index), count)
    }

    @usableFromInline
    mutating func removed(_ element: Element, index: Int, count: Int) {
        guard !isFull else { return }
        keepsPlaces = false
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
        keepsPlaces = false
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
        keepsPlaces = false
    }

    /// The whole value is to be sent.
    @usableFromInline
    mutating func forget() {
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

    /// Beyond a quarter of the elements, the whole value is hardly longer.
    @inlinable
    mutating func append(_ step: Step, _ count: Int) {
        guard steps.count < max(64, count / 4) else {
            forget()
            return
        }
        steps.append(step)
    }
}
