/// What happened to a keyed collection since its changes were taken.
///
/// Elements are noted by their ids and read when the changes are taken: each is written at most once however often it was
/// changed, and the log holds no copy that would make the next change in place copy the element.
package struct ChangeLog<Element: Identifiable & Sendable>: Sendable where Element.ID: Sendable {
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

    private(set) var steps: [Step] = []
    /// The step that writes an element.
    private var writes: [Element.ID: Int] = [:]
    /// There were too many steps.
    private(set) var isFull = false
    /// The version that the steps begin with.
    let start = ChangeMark()

    mutating func updated(_ id: Element.ID, index: Int, count: Int) {
        guard writes[id] == nil else { return }
        write(id, .replace(id: id, index: index), count)
    }

    mutating func added(_ id: Element.ID, index: Int, count: Int) {
        write(id, .add(id: id, index: index), count)
    }

    mutating func removed(_ element: Element, index: Int, count: Int) {
        guard !isFull else { return }
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

    mutating func moved(from: Int, to: Int, count: Int) {
        guard !isFull else { return }
        if case .move(let first, let last)? = steps.last, last == from {
            steps[steps.count - 1] = first == to ? .nothing : .move(from: first, to: to)
        } else {
            append(.move(from: from, to: to), count)
        }
    }

    mutating func removedAll() {
        steps = [.removeAll]
        writes = [:]
        isFull = false
    }

    private mutating func write(_ id: Element.ID, _ step: Step, _ count: Int) {
        guard !isFull else { return }
        writes[id] = steps.count
        append(step, count)
    }

    /// Beyond a quarter of the elements, the whole value is hardly longer.
    private mutating func append(_ step: Step, _ count: Int) {
        guard steps.count < max(64, count / 4) else {
            steps = []
            writes = [:]
            isFull = true
            return
        }
        steps.append(step)
    }
}
