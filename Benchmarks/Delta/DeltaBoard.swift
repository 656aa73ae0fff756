import Glibc
import Trebuchet

/// An element of a board.
struct DeltaItem: Codable, Sendable, Identifiable {
    let id: Int
    var title: String
    var count = 0

    static func items(_ count: Int) -> [DeltaItem] {
        (0..<count).map { DeltaItem(id: $0, title: "element number \($0)") }
    }
}

/// A board of items, of which one changes at a time.
protocol DeltaBenchBoard: DistributedActor where ActorSystem == TrebuchetActorSystem {
    associatedtype Items: Codable, Sendable, RandomAccessCollection<DeltaItem> where Items.Index == Int

    nonisolated var observeItems: StateObservation<Self, Items> { get }
    distributed func update(_ id: Int, _ count: Int)
    distributed func processorTime() -> Int
}

/// A board that records its changes.
@Trebuchet
distributed actor KeyedBoard: DeltaBenchBoard {
    @StreamedState var items: KeyedCollection<DeltaItem>

    init(count: Int, actorSystem: TrebuchetActorSystem) {
        items = KeyedCollection(DeltaItem.items(count))
        self.actorSystem = actorSystem
    }

    distributed func update(_ id: Int, _ count: Int) { items.update(id: id) { $0.count = count } }
    /// Returns the processor time of the reactor's thread in nanoseconds.
    distributed func processorTime() -> Int { ProcessorTime.thread }
}

/// A board that is encoded and compared for each version.
@Trebuchet
distributed actor ComparedBoard: DeltaBenchBoard {
    @StreamedState var items: [DeltaItem]

    init(count: Int, actorSystem: TrebuchetActorSystem) {
        items = DeltaItem.items(count)
        self.actorSystem = actorSystem
    }

    distributed func update(_ id: Int, _ count: Int) { items[id].count = count }
    distributed func processorTime() -> Int { ProcessorTime.thread }
}

/// Processor time clocks.
enum ProcessorTime {
    /// The processor time of this thread in nanoseconds.
    static var thread: Int { read(CLOCK_THREAD_CPUTIME_ID) }
    /// The processor time of all threads of the process in nanoseconds.
    static var process: Int { read(CLOCK_PROCESS_CPUTIME_ID) }

    private static func read(_ clock: clockid_t) -> Int {
        var time = timespec()
        clock_gettime(clock, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
