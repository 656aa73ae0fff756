import Trebuchet

/// Two states that are kept and one that is not.
@Trebuchet
distributed actor Diary {
    @StreamedState(persisted: true) var pages: [String] = []
    @StreamedState(persisted: true) var owner: String = "nobody"
    @StreamedState var readers: Int = 0

    distributed func write(_ page: String) -> Int {
        pages.append(page)
        return pages.count
    }
    distributed func writeLater(_ page: String) async -> Int {
        await Task.yield()
        return write(page)
    }
    distributed func writeAndThrow(_ page: String) throws {
        pages.append(page)
        throw Closed(reason: "after \(page)")
    }
    distributed func own(_ name: String) { owner = name }
    distributed func read() -> [String] {
        readers += 1
        return pages
    }
    distributed func whose() -> String { owner }
}

extension Diary {
    distributed func writeFromExtension(_ page: String) -> Int { write(page) }
}

/// A state that JSON cannot tell when it is not finite.
@Trebuchet
distributed actor Scale {
    @StreamedState(persisted: true) var weight: Double = 0

    distributed func put(_ weight: Double) { self.weight += weight }
    distributed func breakDown() { weight = .infinity }
    distributed func mend() { weight = 1 }
}
