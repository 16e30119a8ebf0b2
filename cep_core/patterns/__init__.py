"""The parts that patterns of every kind share: file model, name resolution, schedules and expectations."""
