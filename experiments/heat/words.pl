# Counts pairs of words of a text that is made up by Zipf's law, in a hash that grows to some millions of pairs.
use strict;
use warnings;

srand(1);
my (%count, $before);
$before = 0;
while (1) {
    my $word = int(exp(rand(log(50_000))));
    $count{"$before $word"}++;
    $before = $word;
}
