import Trebuchet

/// Sends events that are persisted across owners.
@Trebuchet
distributed actor PersistedEventActor {
    @StreamedEvents(persisted: true) var strikes: Int

    distributed func strike(_ number: Int) { $strikes.send(number) }
}
